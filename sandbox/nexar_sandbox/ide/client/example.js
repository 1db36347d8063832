// A query to begin with, for any operation: its required parameters as variables, and fields of its answer that need
// no parameters.
import { graphql } from "./elements.js";

// Fields with no fields of their own that are taken at each level, and how deep lists and pages are followed.
const LEAVES = 6;
const DEPTH = 4;
// Where answers have what is asked for.
const INNER = ["results", "part", "parts", "nodes", "node", "hits"];

export function example(kind, field) {
  const required = field.args.filter(graphql.isRequiredArgument);
  const asked = required.length ? required : field.args.slice(0, 1);
  const declared = asked.map(({ name, type }) => `$${name}: ${type}`).join(", ");
  const passed = asked.map(({ name }) => `${name}: $${name}`).join(", ");
  const title = field.name[0].toUpperCase() + field.name.slice(1);
  const head = `${kind} ${title}${declared && `(${declared})`}`;
  const body = `${field.name}${passed && `(${passed})`}${selection(field.type, DEPTH)}`;
  const variables = Object.fromEntries(asked.map(({ name, type }) => [name, placeholder(type, name)]));
  const query = graphql.print(graphql.parse(`${head} { ${body} }`));
  return { query: `${query}\n`, variables: asked.length ? JSON.stringify(variables, null, 2) : "" };
}

function selection(type, depth) {
  const named = graphql.getNamedType(type);
  if (graphql.isLeafType(named)) return "";
  if (graphql.isUnionType(named)) return " { __typename }";
  const open = Object.values(named.getFields()).filter((field) => !field.name.startsWith("_") && !field.args.some(graphql.isRequiredArgument));
  const leaves = open.filter((field) => graphql.isLeafType(graphql.getNamedType(field.type))).slice(0, LEAVES);
  const inner = depth > 1 ? open.filter((field) => INNER.includes(field.name) && !leaves.includes(field)) : [];
  const chosen = [...leaves, ...inner].map((field) => field.name + selection(field.type, depth - 1));
  return ` { ${chosen.join(" ") || "__typename"} }`;
}

// What an input may not be without, and if that is nothing that has to be thought of, its first text or number too.
function filled(type) {
  const fields = Object.values(type.getFields());
  const needed = fields.filter((field) => graphql.isNonNullType(field.type));
  if (!needed.some(graphql.isRequiredInputField)) needed.unshift(...fields.filter((field) => graphql.isLeafType(field.type)).slice(0, 1));
  return Object.fromEntries(needed.map((field) => [field.name, field.defaultValue ?? placeholder(field.type, field.name)]));
}

// The least value of a type.
function placeholder(type, name) {
  if (graphql.isNonNullType(type)) return placeholder(type.ofType, name);
  if (graphql.isListType(type)) return [placeholder(type.ofType, name)];
  if (graphql.isEnumType(type)) return type.getValues()[0].name;
  if (graphql.isInputObjectType(type)) return filled(type);
  if (name === "token") return "{{token}}";
  return { Int: 1, Float: 1, Boolean: false, Map: {} }[type.name] ?? "";
}
