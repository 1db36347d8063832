"""Finds texts of a page with too little contrast."""

# The contrast of every text that can be seen with what is behind it (WCAG 2.2, 1.4.3); those below 4.5.
PALE = """
const rgb = (text) => (text.match(/[\\d.]+/g) || [0, 0, 0, 0]).map(Number);
const linear = (v) => v / 255 <= 0.04045 ? v / 255 / 12.92 : ((v / 255 + 0.055) / 1.055) ** 2.4;
const light = ([r, g, b]) => [r, g, b].map(linear)
  .reduce((sum, v, i) => sum + v * [0.2126, 0.7152, 0.0722][i], 0);
const behind = (element) => {
  for (let at = element; at; at = at.parentElement) {
    const [r, g, b, a = 1] = rgb(getComputedStyle(at).backgroundColor);
    if (a > 0) return [r, g, b];
  }
  return [255, 255, 255];
};
const pale = [];
for (const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT); walker.nextNode();) {
  const element = walker.currentNode.parentElement;
  if (!walker.currentNode.data.trim() || !element.checkVisibility()) continue;
  if (element.closest("script, style, option")) continue;
  const style = getComputedStyle(element);
  const [one, other] = [light(rgb(element.closest("svg") ? style.fill : style.color)), light(behind(element))];
  const contrast = (Math.max(one, other) + 0.05) / (Math.min(one, other) + 0.05);
  if (contrast < 4.5) pale.push(`${element.tagName}.${element.className}: ${contrast.toFixed(2)}`);
}
return [...new Set(pale)];
"""
