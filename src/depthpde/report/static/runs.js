/* A table of runs that filters, sorts and pages by itself; its setting is the address. */

const PAGE = 100;

export function runTable(place, data) {
  const body = place.querySelector("tbody");
  const heads = [...place.querySelectorAll("thead th")];
  const form = place.querySelector("form");
  const count = place.querySelector(".count");
  const [before, after] = place.querySelectorAll(".turn button");
  const rows = data.rows.map((row) => ({
    task: data.tasks[row[0]], variant: data.variants[row[1]], seed: row[2], state: row[3],
    accuracy: row[4], run: row[5], data: row[6], environment: row[7],
  }));
  for (const row of rows) row.text = Object.values(row).join(" ").toLowerCase();
  const keys = heads.map((head) => head.dataset.key);
  let setting = { sort: "", page: 1 };

  const number = (value) => parseFloat(String(value).replace("−", "-"));
  const compare = (key) => (a, b) => {
    const [x, y] = [number(a[key]), number(b[key])];
    if (key === "seed" || key === "accuracy") {
      if (isNaN(x) || isNaN(y)) return isNaN(x) - isNaN(y);
      return x - y;
    }
    return a[key] < b[key] ? -1 : a[key] > b[key] ? 1 : 0;
  };

  function found() {
    const words = form.q.value.toLowerCase().split(/\s+/).filter(Boolean);
    let kept = rows.filter((row) =>
      ["task", "variant", "state"].every((key) => !form[key].value || row[key] === form[key].value) &&
      words.every((word) => row.text.includes(word)));
    if (setting.sort) {
      const key = setting.sort.replace("-", "");
      kept = [...kept].sort(compare(key));
      if (setting.sort[0] === "-") kept.reverse();
    }
    return kept;
  }

  function cell(tag, text, kind) {
    const made = document.createElement(tag);
    made.textContent = text;
    if (kind) made.className = kind;
    return made;
  }

  function line(row) {
    const made = document.createElement("tr");
    for (const [index, key] of keys.entries()) {
      const kind = heads[index].className;
      const place = cell("td", key === "run" ? "" : row[key], kind);
      if (key === "run") {
        const name = cell("code", row.run);
        if (data.folder && row.accuracy) {
          const link = document.createElement("a");
          link.href = `${data.folder}/${row.run}/result.json`;
          link.append(name);
          place.append(link);
        } else place.append(name);
      }
      made.append(place);
    }
    return made;
  }

  function draw() {
    const kept = found();
    const pages = Math.max(1, Math.ceil(kept.length / PAGE));
    setting.page = Math.min(Math.max(1, setting.page), pages);
    const first = PAGE * (setting.page - 1);
    body.replaceChildren(...kept.slice(first, first + PAGE).map(line));
    const many = (n) => n.toLocaleString("en");
    const shown = kept.length ? `${many(first + 1)}–${many(Math.min(first + PAGE, kept.length))} of ` : "";
    const of = kept.length === rows.length ? "" : `, ${many(rows.length)} in all`;
    count.textContent = `${shown}${many(kept.length)} ${kept.length === 1 ? "run" : "runs"}${of}`;
    before.disabled = setting.page === 1;
    after.disabled = setting.page === pages;
    for (const [index, head] of heads.entries()) {
      const sorted = setting.sort.replace("-", "") === keys[index];
      head.setAttribute("aria-sort", !sorted ? "none" : setting.sort[0] === "-" ? "descending" : "ascending");
    }
  }

  function remember() {
    const said = new URLSearchParams();
    for (const key of ["q", "task", "variant", "state"]) if (form[key].value) said.set(key, form[key].value);
    if (setting.sort) said.set("sort", setting.sort);
    if (setting.page > 1) said.set("page", setting.page);
    history.replaceState(null, "", `#${said}`);
  }

  function recall() {
    const hash = decodeURIComponent(location.hash.slice(1));
    const known = data.cells[hash];
    const said = new URLSearchParams(known || hash.startsWith("run-") ? "" : location.hash.slice(1));
    for (const key of ["q", "task", "variant", "state"]) form[key].value = said.get(key) || "";
    if (known) [form.task.value, form.variant.value] = [data.tasks[known[0]], data.variants[known[1]]];
    if (hash.startsWith("run-")) form.q.value = hash.slice(4);
    const sort = said.get("sort") || "";
    setting = {
      sort: keys.includes(sort.replace("-", "")) ? sort : "",
      page: parseInt(said.get("page"), 10) || 1,
    };
    draw();
  }

  const change = (next) => {
    setting = { ...setting, ...next };
    draw();
    remember();
  };
  form.addEventListener("input", () => change({ page: 1 }));
  form.addEventListener("submit", (event) => event.preventDefault());
  for (const [index, head] of heads.entries()) {
    head.querySelector("button").addEventListener("click", () => {
      const key = keys[index];
      change({ sort: setting.sort === key ? `-${key}` : setting.sort === `-${key}` ? "" : key, page: 1 });
    });
  }
  before.addEventListener("click", () => change({ page: setting.page - 1 }));
  after.addEventListener("click", () => change({ page: setting.page + 1 }));
  window.addEventListener("hashchange", recall);
  place.classList.add("ready");
  recall();
}

runTable(document.getElementById("runs"), JSON.parse(document.getElementById("rows").textContent));
