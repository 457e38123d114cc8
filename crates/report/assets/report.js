"use strict";
// The report's page: an overview of all cases, and each case on demand.

const overview = JSON.parse(document.getElementById("overview").textContent);
const chunks = new Map();
Object.assign(look, overview.look);

/** Unpacks the detail of a case: chunks of cases are stored compressed. */
async function detailOf(index) {
  const size = overview.chunk;
  const number = Math.floor(index / size);
  if (!chunks.has(number)) {
    const packed = document.getElementById(`chunk-${number}`).textContent.trim();
    const bytes = Uint8Array.from(atob(packed), (c) => c.charCodeAt(0));
    const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
    if (chunks.size > 16) chunks.clear();
    chunks.set(number, JSON.parse(await new Response(stream).text()));
  }
  return chunks.get(number)[index - number * size];
}

const main = document.getElementById("main");
document.getElementById("about").textContent = overview.about;

// ---------------------------------------------------------------------------------- overview

const list = { filter: "", verdict: "", sort: null, descending: false, page: 0, cursor: 0 };
const PAGE_ROWS = 200;

/** Returns the indices of the cases that the filter lets through, sorted. */
function chosenCases() {
  const words = list.filter.toLowerCase().split(/\s+/).filter(Boolean);
  const found = [];
  for (let i = 0; i < overview.cases.length; i++) {
    const row = overview.cases[i];
    const text = row.join(" ").toLowerCase();
    if (!words.every((word) => text.includes(word))) continue;
    if (list.verdict && !row.slice(overview.fixed).includes(list.verdict)) continue;
    found.push(i);
  }
  const key = (i) => overview.cases[i][list.sort];
  const compare = (a, b) => {
    const [x, y] = [key(a), key(b)];
    const order = typeof x === "number" && typeof y === "number" ? x - y : String(x).localeCompare(String(y), "en", { numeric: true });
    return order || a - b;
  };
  if (list.sort !== null) found.sort(compare);
  if (list.descending) found.reverse();
  return found;
}

function showOverview() {
  document.title = overview.title;
  const rows = el("tbody");
  const count = el("span", { class: "muted", role: "status" });
  const pager = el("span");
  const columns = overview.columns;
  const fill = () => {
    const found = chosenCases();
    const pages = Math.max(1, Math.ceil(found.length / PAGE_ROWS));
    list.page = Math.min(list.page, pages - 1);
    const first = list.page * PAGE_ROWS;
    rows.replaceChildren();
    heads.forEach((head, column) => {
      if (column === list.sort) head.setAttribute("aria-sort", list.descending ? "descending" : "ascending");
      else head.removeAttribute("aria-sort");
    });
    for (const i of found.slice(first, first + PAGE_ROWS)) {
      const cells = overview.cases[i].map((value, column) => {
        const isVerdict = column >= overview.fixed;
        const isNumber = typeof value === "number";
        const text = isNumber ? value.toLocaleString("en") : String(value);
        const name = isVerdict ? wordClass(text) : "";
        const content = column === 0 ? el("a", { href: `#/case/${i}` }, ...breakable(text)) : isVerdict ? wordOf(text) : text;
        return el("td", { class: isNumber ? "number" : name }, content);
      });
      const row = el("tr", { class: "link", onclick: () => (location.hash = `#/case/${i}`) }, ...cells);
      rows.append(row);
    }
    const total = overview.cases.length;
    count.textContent = found.length === total ? `${total.toLocaleString("en")} in all` : `${found.length.toLocaleString("en")} of ${total.toLocaleString("en")}`;
    pager.replaceChildren();
    if (pages > 1) {
      const turn = (by) => () => {
        list.page = Math.max(0, Math.min(pages - 1, list.page + by));
        fill();
      };
      pager.append(
        el("button", { onclick: turn(-1), "aria-label": "previous page" }, "‹"),
        ` page ${list.page + 1} of ${pages} `,
        el("button", { onclick: turn(1), "aria-label": "next page" }, "›"),
      );
    }
  };
  const heads = columns.map((name, column) =>
    el("th", { scope: "col", class: typeof overview.cases[0]?.[column] === "number" ? "number" : undefined }, el("button", {
      onclick: () => {
        list.descending = list.sort === column ? !list.descending : false;
        list.sort = column;
        fill();
      },
    }, name)));
  const verdicts = [...new Set(overview.cases.flatMap((row) => row.slice(overview.fixed)))].filter((v) => typeof v === "string" && v).sort();
  const search = el("input", { type: "search", id: "filter", placeholder: "filter ( / )", "aria-label": "filter", value: list.filter, oninput: (e) => { list.filter = e.target.value; list.page = 0; fill(); } });
  const select = el("select", { "aria-label": "verdict", onchange: (e) => { list.verdict = e.target.value; list.page = 0; fill(); } },
    el("option", { value: "" }, "any verdict"), ...verdicts.map((v) => el("option", { value: v, selected: list.verdict === v }, v)));
  const choose = (verdict) => {
    // The selection contains single words; a longer verdict is searched by the filter.
    const isWhole = verdicts.includes(verdict);
    select.value = list.verdict = isWhole ? verdict : "";
    search.value = list.filter = isWhole ? "" : verdict;
    list.page = 0;
    fill();
  };
  main.replaceChildren(el("div", { class: "overview" },
    counts(choose),
    el("div", { class: "tools" }, search, select, count, pager),
    el("section", { class: "card sheet", "aria-label": "cases" }, el("table", {}, el("thead", {}, el("tr", {}, ...heads)), rows)),
  ));
  fill();
}

/** Builds the table of counts: a row per model, a column per verdict, and the shares as a bar. */
function counts(choose) {
  const models = overview.columns.slice(overview.fixed);
  if (!models.length || overview.cases.length < 2) return el("h1", {}, overview.title);
  const kinds = ["consistent", "violation", "undecided"];
  const tally = models.map(() => new Map());
  for (const row of overview.cases) {
    row.slice(overview.fixed).forEach((value, column) => {
      const kind = String(value).split(" ")[0];
      tally[column].set(kind, (tally[column].get(kind) ?? 0) + 1);
    });
  }
  const others = [...new Set(tally.flatMap((t) => [...t.keys()]))].filter((k) => k && !kinds.includes(k)).slice(0, 6);
  const all = [...kinds, ...others].filter((kind) => tally.some((t) => t.has(kind)));
  const cell = (kind, count) => (count
    ? el("td", { class: `number ${kind}` }, el("button", { title: `show those with "${kind}"`, onclick: () => choose(kind) }, count.toLocaleString("en")))
    : el("td", { class: "number muted" }, "0"));
  const bar = (column) => {
    const parts = all.filter((kind) => tally[column].has(kind));
    const spoken = parts.map((kind) => `${tally[column].get(kind)} ${kind}`).join(", ");
    return el("div", { class: "bar", role: "img", "aria-label": spoken, title: spoken }, ...parts.map((kind) => {
      const part = el("i", { class: wordClass(kind) || undefined });
      part.style.flexGrow = String(tally[column].get(kind));
      return part;
    }));
  };
  return el("section", { class: "card", "aria-label": "counts" }, el("h1", {}, overview.title),
    el("table", { class: "counts" },
      el("thead", {}, el("tr", {}, el("th", { scope: "col" }, "model"), ...all.map((kind) => el("th", { scope: "col", class: "number" }, kind)), el("td", { class: "share" }))),
      el("tbody", {}, ...models.map((model, column) => el("tr", {}, el("th", { scope: "row" }, model),
        ...all.map((kind) => cell(kind, tally[column].get(kind) ?? 0)), el("td", { class: "share" }, bar(column)))))));
}

async function showCase(index) {
  const data = await detailOf(index);
  document.title = `${data.title} · ${overview.title}`;
  const many = overview.cases.length > 1;
  const links = el("nav", { class: "tools", "aria-label": "cases" },
    many ? el("a", { href: "#/" }, "all") : null,
    index > 0 ? el("a", { href: `#/case/${index - 1}` }, "previous") : null,
    index + 1 < overview.cases.length ? el("a", { href: `#/case/${index + 1}` }, "next") : null);
  main.replaceChildren(caseView(data, links));
  main.focus();
}

// ------------------------------------------------------------------------------------ routes

async function route() {
  stop();
  document.getElementById("tip").hidden = true;
  const match = /^#\/case\/(\d+)$/.exec(location.hash);
  const only = overview.cases.length === 1;
  try {
    if (match && Number(match[1]) < overview.cases.length) await showCase(Number(match[1]));
    else if (only) await showCase(0);
    else showOverview();
  } catch (error) {
    main.replaceChildren(el("p", { class: "error" }, `This part of the report cannot be shown: ${error.message}`));
  }
}

addEventListener("hashchange", route);
isDark.addEventListener("change", route);
addEventListener("keydown", (e) => {
  if (e.target instanceof HTMLInputElement && e.target.type === "search") {
    if (e.key === "Escape") e.target.blur();
    return;
  }
  if (pictureKey(e) || e.ctrlKey || e.metaKey || e.altKey) return;
  if (e.key === "/" && document.getElementById("filter")) {
    e.preventDefault();
    document.getElementById("filter").focus();
  } else if (e.key === "Escape" && overview.cases.length > 1) {
    location.hash = "#/";
  }
});
route();
