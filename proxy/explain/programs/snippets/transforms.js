// Transforms of mapping files in JavaScript: a program gets those that its fields need, and what they use.

// v3's price table, like {"USD": [[1, "0.64700"], [10, "0.58000"]]}.
function pricesByCurrency(prices) {
  const table = {};
  for (const { quantity, price, currency } of prices) {
    if (currency) (table[currency] ??= []).push([quantity, fiveDecimals(price)]);
  }
  return table;
}

// A price as v3 wrote it. v3 rounded halves to even, toFixed() rounds them up; only odd 64ths end in such a half.
function fiveDecimals(price) {
  if (Math.abs(price * 64) % 2 !== 1) return price.toFixed(5);
  const below = Math.floor(price * 1e5);
  return ((below + Math.abs(below % 2)) / 1e5).toFixed(5);
}

// A time as v3 wrote it, like 2023-11-14T22:13:20Z.
function timestamp(time) {
  const zoned = /(Z|[+-]\d\d:?\d\d)$/.test(time) ? time : `${time}Z`;
  return `${new Date(zoned).toISOString().slice(0, 19)}Z`;
}

// A number as v3's text.
function text(value) {
  return String(value);
}

// v3's id of an offer: seller, SKU and, where there is one, region.
function naiveId(sellerId, sku, region) {
  return region ? `${sellerId}_${sku}_${region}` : `${sellerId}_${sku}`;
}

// The second elements of pairs, sorted by the first ones.
function ranked(pairs) {
  return pairs.sort(([one], [other]) => one - other).map(([, element]) => element);
}

// v3's order of offers: authorized first, then in stock, out of stock, other currency, no price.
function offerRank(authorized, stock, prices, currency) {
  const rank = authorized ? 0 : 4;
  if (prices.length === 0) return rank + 3;
  if (prices.every((price) => price.currency !== currency)) return rank + 2;
  // -2: in stock, the quantity is not known.
  return stock > 0 || stock === -2 ? rank : rank + 1;
}

// The media type that v3 gave a picture, by the ending of its URL.
function imageMimetype(url) {
  const ending = url.split(".").pop().toLowerCase();
  return ["png", "gif", "svg", "webp"].includes(ending) ? `image/${ending}` : "image/jpg";
}

// Whether a collection of documents has datasheets.
function isDatasheetGroup(name) {
  return name.toLowerCase().includes("datasheet");
}

// Whether a collection of documents has compliance documents.
function isComplianceGroup(name) {
  return name.toLowerCase().includes("compliance");
}

// v3's token of a document's name: rohs_statement for "Rohs Statement".
function subtypes(documentName) {
  return documentName ? [documentName.toLowerCase().trim().split(/\s+/).join("_")] : [];
}

// The links of the CAD formats that exist.
function cadDownloads(cad) {
  return ["Altium", "Eagle", "Orcad", "Kicad"]
    .filter((name) => cad[`has${name}`] && cad[`downloadUrl${name}`])
    .map((name) => cad[`downloadUrl${name}`]);
}

// The link of a broker's first offer.
function firstClick(offers) {
  return offers.length > 0 ? offers[0].clickUrl : null;
}

// The name of each object.
function names(named) {
  return named.map((each) => each.name);
}

// The requested uid, if it led to a part with another one.
function redirected(uid, requested) {
  return requested && requested !== uid ? [requested] : [];
}

// A price in the wanted currency; null where Nexar has no exchange rate and repeats the price.
function convertedPrice(price, currency, converted, convertedTo, wanted) {
  const repeated = converted === price && price !== 0 && currency !== wanted;
  return convertedTo !== wanted || repeated ? null : converted;
}

// The lifecycle status of a part, such as Production.
function lifecycleStatus(specs) {
  const spec = specOf("lifecyclestatus", specs);
  return spec && (spec.value || spec.displayValue);
}

// The package of a part, such as SOIC.
function casePackage(specs) {
  const spec = specOf("case_package", specs);
  return spec && spec.displayValue;
}

// v3's uid of a company or category: the recorded one, else one that v3bridge computes from Nexar's id.
function uid(table, tag, id, name) {
  return table[id] ?? table[name.toLowerCase()] ?? tag + Number(id).toString(16).padStart(10, "0");
}

// v3's uid of a seller.
function sellerUid(id, name) {
  return uid(SELLER_UIDS, "5e11e4", id, name);
}

// v3's uid of a brand.
function brandUid(id, name) {
  return uid(BRAND_UIDS, "b4a2d0", id, name);
}

// v3's uid of a manufacturer.
function manufacturerUid(id, name) {
  return uid(MANUFACTURER_UIDS, "3a2fac", id, name);
}

// v3's uid of a category.
function categoryUid(id, name) {
  return uid(CATEGORY_UIDS, "ca7e60", id, name);
}

// v3's uid of each category.
function categoryUids(categories) {
  return categories.map((each) => categoryUid(each.id, each.name));
}

// v3's uids from the root to the category itself.
function categoryLine(category) {
  return categoryUids([...category.ancestors, category]);
}

// v3's uid of the last ancestor; null for the root.
function parentUid(ancestors) {
  return categoryUids(ancestors).pop() ?? null;
}

// v3's name of a seller, where it is recorded.
function sellerName(id, name) {
  return SELLER_NAMES[id] ?? SELLER_NAMES[name] ?? name;
}

// v3's name of the source of a text or document.
function sourceName(name) {
  return SOURCE_NAMES[name] ?? name;
}

// v3's uid of a source, where it is recorded. v3bridge makes a digest (BLAKE2b) of other names, because Nexar has no id
// of a source; JavaScript has no such function, so that they have none here.
function sourceUid(name) {
  return SOURCE_UIDS[sourceName(name).toLowerCase()] ?? SOURCE_UIDS[name.toLowerCase()] ?? null;
}

// The spec of an attribute; null if the part has none.
function specOf(shortname, specs) {
  return specs.find((spec) => spec.attribute.shortname === shortname) ?? null;
}

// v3's key of a spec. A general tolerance has that of the quantity which the part has beside it.
function specKey(shortname, name, specs) {
  for (const [quantity, key] of Object.entries(SPECS_BESIDE[shortname] ?? {})) {
    if (specOf(quantity, specs)) return key;
  }
  const spelled = name.toLowerCase().replace(/[^a-z0-9]+/g, "_").replace(/^_|_$/g, "");
  return SPEC_KEYS[shortname] || spelled || shortname;
}

// v3's name of a spec: the words of its key if that depends on a quantity, such as Resistance Tolerance.
function specName(shortname, name, specs) {
  const key = specKey(shortname, name, specs);
  if (Object.values(SPECS_BESIDE[shortname] ?? {}).includes(key)) {
    return key.split("_").map((word) => word[0].toUpperCase() + word.slice(1)).join(" ");
  }
  return SPEC_NAMES[shortname] ?? name;
}

// Whether a part shows this spec. Where several attributes make one spec of v3, only one of them does.
function specShown(shortname, specs) {
  const range = SPEC_RANGES[shortname];
  if (range) {
    const before = { value: [], low: ["value"], high: ["value", "low"] };
    const role = Object.keys(before).find((each) => range[each] === shortname);
    return !before[role].some((earlier) => specOf(range[earlier], specs));
  }
  if (!(shortname in SPECS_BESIDE)) return true;
  const own = SPECS_OF_KEYS[specKey(shortname, "", specs)];
  return own === shortname || specOf(own, specs) === null;
}

// v3's datatype of a spec.
function specDatatype(shortname, valueType) {
  if (valueType !== "number" || PERCENT_SPECS.includes(shortname)) return "string";
  return WHOLE_SPECS.includes(shortname) ? "integer" : "decimal";
}

// Whether v3 gave a spec a unit.
function specHasUnit(shortname, unitsName) {
  return Boolean(unitsName) && !PERCENT_SPECS.includes(shortname);
}

// v3's values of a spec; none of an end of a range, or of an empty value.
function specValues(shortname, valueType, value, siValue) {
  const range = SPEC_RANGES[shortname];
  if ((range && [range.low, range.high].includes(shortname)) || !(value || siValue)) return [];
  if (valueType !== "number") return LISTED_SPECS.includes(shortname) ? value.split(", ") : [value];
  return [specNumber(shortname, value, siValue)];
}

// A number as v3 wrote it, in SI base units: 22000.0, 14 for a count, ±5% for a tolerance.
function specNumber(shortname, value, siValue) {
  const number = Number(siValue || value || NaN);
  if (Number.isNaN(number)) return value;
  if (PERCENT_SPECS.includes(shortname)) return `±${Number(number.toPrecision(6))}%`;
  if (WHOLE_SPECS.includes(shortname) && Number.isInteger(number)) return BigInt(number).toString();
  return decimal(number);
}

// A number as Python, and so v3, writes it: with a point, or with an exponent such as 1e-06.
function decimal(number) {
  const [digits, exponent] = number.toExponential().split("e");
  if (exponent < -4 || exponent >= 16) {
    return `${digits}e${exponent[0]}${exponent.slice(1).padStart(2, "0")}`;
  }
  return Number.isInteger(number) ? number.toFixed(1) : String(number);
}

// One end of the range that a spec belongs to.
function specEnd(end, shortname, specs) {
  const spec = specOf(SPEC_RANGES[shortname]?.[end], specs);
  return (spec && specNumber(spec.attribute.shortname, spec.value, spec.siValue)) || null;
}

// The lower end of the range that a spec belongs to.
function specLow(shortname, specs) {
  return specEnd("low", shortname, specs);
}

// The upper end of the range that a spec belongs to.
function specHigh(shortname, specs) {
  return specEnd("high", shortname, specs);
}

// v3's text of a spec for people: both ends of a range, ±5% of a tolerance, else Nexar's.
function specDisplay(shortname, shown, value, siValue, specs) {
  if (PERCENT_SPECS.includes(shortname)) {
    const number = specNumber(shortname, value, siValue);
    return number === value ? shown : number;
  }
  const range = SPEC_RANGES[shortname];
  if (!range || shortname === range.value) return shown;
  const [low, high] = [specOf(range.low, specs), specOf(range.high, specs)];
  if (low && high) return `${low.displayValue} to ${high.displayValue}`;
  return `${shown} (${shortname === range.low ? "min" : "max"})`;
}
