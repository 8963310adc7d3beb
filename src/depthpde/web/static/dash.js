/* Starts what a page has. No library, nothing from the network but this dashboard. */

import { instrument } from "./instrument.js";
import { listen, patch } from "./live.js";
import { run } from "./run.js";

function board(place) {
  listen(place.dataset.events, {
    sections: patch,
    structure: (now) => {
      if (now !== place.dataset.structure) location.reload();
    },
  });
}

/* The board follows its filters at once; without script the button does it. */
function filters(form) {
  const show = () => {
    const said = new URLSearchParams([...new FormData(form)].filter(([, value]) => value));
    location.assign(`/${said.size ? `?${said}` : ""}`);
  };
  form.addEventListener("change", show);
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    show();
  });
}

/* A choice on the compare page redraws the result in place; without script the form does it. */
function choice(form) {
  let last = 0;
  form.addEventListener("change", async (event) => {
    if (event.target.id === "grid") {
      location.assign(`/compare?${new URLSearchParams({ grid: event.target.value })}`);
      return;
    }
    const turn = ++last;
    const address = `/compare?${new URLSearchParams(new FormData(form))}`;
    const answer = await fetch(address);
    const page = new DOMParser().parseFromString(await answer.text(), "text/html");
    const made = page.getElementById("result");
    if (turn !== last) return;
    if (!made) {
      location.assign(address);
      return;
    }
    document.getElementById("result").replaceWith(made);
    history.replaceState(null, "", address);
  });
}

for (const [id, start] of Object.entries({ board, filters, run, instrument, choice })) {
  const place = document.getElementById(id);
  if (place) start(place);
}
