/* Server-sent events, and sections of a page that the server draws anew. */

export function listen(url, handlers) {
  const sign = document.getElementById("live");
  const say = (words, state) => {
    sign.textContent = words;
    sign.dataset.state = state;
  };
  const source = new EventSource(url);
  source.onopen = () => say("● live", "on");
  source.onerror = () => say("○ not connected, trying again", "off");
  for (const [name, handle] of Object.entries(handlers)) {
    source.addEventListener(name, (event) => handle(JSON.parse(event.data)));
  }
  source.addEventListener("end", () => {
    source.close();
    say("finished: nothing more will come", "on");
  });
  window.addEventListener("pagehide", () => source.close());
}

/* Puts each section in the place of the old one; the keyboard keeps its place. */
export function patch(sections) {
  for (const [id, markup] of Object.entries(sections)) {
    const old = document.getElementById(id);
    if (!old) {
      location.reload();
      return;
    }
    const active = old.contains(document.activeElement) ? document.activeElement : null;
    const holder = document.createElement("template");
    holder.innerHTML = markup; // drawn and escaped by the server; scripts in it never run
    const made = holder.content.firstElementChild;
    old.replaceWith(made);
    if (active) {
      const href = active.getAttribute("href");
      const same = [...made.querySelectorAll("a")].find((each) => each.getAttribute("href") === href);
      (same || made).focus();
    }
  }
}
