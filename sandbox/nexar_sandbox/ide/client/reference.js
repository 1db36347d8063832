// The panel of all operations and their parameters, to search and to begin a query with. Types lead to the
// Documentation Explorer.
import { graphql, h, icon, panel, useMemo, useOpen, usePluginContext, useSchemaContext, useState } from "./elements.js";
import { example } from "./example.js";

const { DOC_EXPLORER_PLUGIN, MarkdownContent, TypeLink } = window.GraphiQL.React;
// Up to so many found operations are shown with their parameters at once.
const FEW = 3;
const PREFIXES = { sup: "Supply", des: "Design", adm: "Administration" };

export const reference = {
  title: "Schema Reference",
  icon: icon("M2 3h5.5l1.5 1 1.5-1H16v12h-5.5L9 16l-1.5-1H2z", "M9 4v12"),
  content: () => h(Reference),
};

function Reference() {
  const { schema } = useSchemaContext({ nonNull: true });
  const [wanted, want] = useState("");
  const groups = useMemo(() => (schema ? grouped(schema) : []), [schema]);
  const found = groups
    .map(([title, fields]) => [title, fields.filter(({ field }) => matches(field, wanted.trim().toLowerCase()))])
    .filter(([, fields]) => fields.length);
  const count = found.reduce((sum, [, fields]) => sum + fields.length, 0);
  return panel(
    "Schema Reference",
    h("input", {
      type: "search",
      "aria-label": "Search operations and parameters",
      placeholder: "Search operations and parameters",
      value: wanted,
      onChange: (event) => want(event.target.value),
    }),
    h("p", { className: "ide-quiet", role: "status" }, schema ? `${count} ${count === 1 ? "operation" : "operations"}` : "The schema is not there yet."),
    found.map(([title, fields]) =>
      h(
        "section",
        { key: title, "aria-label": title },
        h("h3", null, title),
        fields.map(({ kind, field }) =>
          h(Operation, { key: `${kind} ${field.name} ${count <= FEW}`, kind, field, open: count <= FEW }),
        ),
      ),
    ),
  );
}

function Operation({ kind, field, open }) {
  const begin = useOpen();
  const insert = () => {
    const made = example(kind, field);
    begin(made.query, made.variables);
  };
  return h(
    "details",
    { className: "ide-operation", open },
    h("summary", null, h("code", null, field.name), field.deprecationReason != null && h("em", null, " deprecated")),
    field.description && h(MarkdownContent, { type: "description" }, field.description),
    h("p", null, "Returns ", h(Type, { type: field.type })),
    field.args.length > 0 && h("ul", { className: "ide-parameters", "aria-label": `Parameters of ${field.name}` }, field.args.map((argument) => h(Parameter, { key: argument.name, argument }))),
    h("button", { type: "button", className: "ide-button", onClick: insert, "aria-label": `Begin a query with ${field.name}` }, "Begin a query"),
  );
}

function Parameter({ argument }) {
  const value = graphql.astFromValue(argument.defaultValue, argument.type);
  return h(
    "li",
    null,
    h("code", null, argument.name),
    ": ",
    h(Type, { type: argument.type }),
    value && h("code", { className: "ide-quiet" }, ` = ${graphql.print(value)}`),
    graphql.isRequiredArgument(argument) && h("em", null, " required"),
    argument.description && h(MarkdownContent, { type: "description" }, argument.description),
  );
}

function Type({ type }) {
  const plugins = usePluginContext({ nonNull: true });
  // The link itself says to the explorer what to show.
  return h("span", { onClick: () => plugins.setVisiblePlugin(DOC_EXPLORER_PLUGIN) }, h(TypeLink, { type }));
}

function grouped(schema) {
  const of = (kind, type) => Object.values(type?.getFields() ?? {}).map((field) => ({ kind, field }));
  const queries = of("query", schema.getQueryType());
  const named = Object.entries(PREFIXES).map(([prefix, title]) => [
    `${title} (${prefix}…)`,
    queries.filter(({ field }) => field.name.startsWith(prefix)),
  ]);
  const rest = queries.filter(({ field }) => !Object.keys(PREFIXES).some((prefix) => field.name.startsWith(prefix)));
  return [
    ...named,
    ["Other queries", rest],
    ["Mutations", of("mutation", schema.getMutationType())],
    ["Subscriptions", of("subscription", schema.getSubscriptionType())],
  ];
}

function matches(field, wanted) {
  const texts = [field, ...field.args].flatMap(({ name, description }) => [name, description ?? ""]);
  return texts.some((text) => text.toLowerCase().includes(wanted));
}
