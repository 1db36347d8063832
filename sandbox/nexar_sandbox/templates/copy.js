// Copy buttons: each puts the text of the element that it names on the clipboard. Without JavaScript they are not shown.
const status = document.getElementById("copied");

for (const button of document.querySelectorAll("button[data-copies]")) {
  button.hidden = false;
  button.addEventListener("click", () => copy(button));
}

async function copy(button) {
  const source = document.getElementById(button.dataset.copies);
  const done = (await written(source.textContent)) || selected(source);
  button.textContent = done ? "Copied" : "Selected";
  status.textContent = done ? "Copied." : "Selected: press Ctrl-C to copy.";
  setTimeout(() => (button.textContent = "Copy"), 2000);
}

// Browsers have a clipboard for pages only on this machine's own addresses or over TLS.
async function written(text) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    return false;
  }
}

// The older way, which leaves the text selected.
function selected(source) {
  window.getSelection().selectAllChildren(source);
  return document.execCommand("copy");
}
