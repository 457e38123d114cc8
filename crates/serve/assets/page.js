// The local page: an editor on the left; verdict, proof and picture are updated while the user types.

const token = document.querySelector("meta[name=consistory-token]").content;
const byId = (id) => document.getElementById(id);
const KINDS = { history: "history", litmus: "litmus test", protocol: "protocol", model: "model", atlas: "lattice" };
const page = Array.from(crypto.getRandomValues(new Uint32Array(2)), (n) => n.toString(36)).join("");
const state = { kind: "history", text: "", models: [], object: "", order: "session", against: "sc" };
let catalogue = null;
let asked = 0;
let timer = 0;

/** Asks the server; the answer is JSON. */
async function ask(path, body) {
  const answer = await fetch(path, { method: "POST", headers: { "X-Token": token }, body: JSON.stringify(body) });
  if (!answer.ok) throw new Error((await answer.text()).trim() || `the server answered ${answer.status}`);
  return answer.json();
}

// ----------------------------------------------------------------------------------- options

function showOptions() {
  document.querySelector(".editor").hidden = state.kind === "atlas";
  byId("kinds").replaceChildren(...Object.entries(KINDS).map(([kind, name]) =>
    el("button", { "aria-pressed": kind === state.kind, "data-kind": kind, onclick: () => changeKind(kind) }, name)));
  const options = [];
  const chips = (legend, rows) => el("fieldset", {}, el("legend", {}, legend), ...rows.map((row) =>
    el("label", { class: "chip", title: `${row.title}${row.meaning ? `. ${row.meaning}` : ""}` },
      el("input", { type: "checkbox", value: row.id, checked: state.models.includes(row.id), onchange: (e) => {
        state.models = e.target.checked ? [...state.models, row.id] : state.models.filter((id) => id !== row.id);
        changed(0);
      } }), row.id)));
  const select = (name, value, values, onchange) => el("label", {}, `${name} `, el("select", { onchange: (e) => { onchange(e.target.value); changed(0); } },
    ...values.map(([id, text]) => el("option", { value: id, selected: id === value }, text))));
  if (state.kind === "history") {
    const family = familyOf(state.text);
    options.push(chips("models", catalogue.models.filter((row) => row.family === family)));
    if (family === "objects") options.push(select("object", state.object, [["", "by its methods"], ...catalogue.objects.map((name) => [name, name])], (v) => (state.object = v)));
    if (family === "transactions") options.push(select("order", state.order, [["session", "session order"], ["realtime", "real time"], ["none", "none"]], (v) => (state.order = v)));
  } else if (state.kind === "litmus") {
    options.push(chips("models", catalogue.memory));
  } else if (state.kind === "model") {
    options.push(select("compare with", state.against, catalogue.definitions.map((d) => [d.id, `${d.id}: ${d.title}`]), (v) => (state.against = v)));
    options.push(select("start from", "", [["", "…"], ...catalogue.definitions.map((d) => [d.id, d.id])], (v) => {
      const found = catalogue.definitions.find((d) => d.id === v);
      if (found) setText(found.text);
    }));
  } else if (state.kind === "atlas") {
    options.push(el("span", { class: "muted" }, "Which model implies which, and the smallest history that tells two neighbours apart."));
  } else {
    options.push(el("span", { class: "muted" }, "A protocol in Murphi, with marks for loads and stores; every run is explored."));
  }
  byId("options").replaceChildren(...options);
}

/** Guesses the family of a history's models by its notation. */
function familyOf(text) {
  const body = text.split("\n").filter((line) => !/^\s*(#|$)/.test(line)).join("\n");
  if (/\[\s*[\w"]|"type"\s*:\s*"txn"|:txn/.test(body.replace(/=>\s*\[[^\]]*\]/g, ""))) return "transactions";
  const calls = body.match(/[A-Za-z_][\w-]*(?=\()/g) ?? [];
  if (calls.some((name) => !["w", "r", "rmw", "cas", "f", "fence", "append"].includes(name))) return "objects";
  return /"method"\s*:/.test(body) ? "objects" : "registers";
}

function changeKind(kind) {
  if (kind === state.kind) return;
  if (kind === "atlas") {
    state.kind = kind;
    byId("examples").value = "";
    setText("");
    return showOptions();
  }
  useExample(catalogue.examples.find((e) => e.kind === kind));
}

function useExample(example) {
  Object.assign(state, { kind: example.kind, models: [...example.models], object: example.object });
  if (example.kind === "model") state.against = example.models[0];
  byId("examples").value = String(catalogue.examples.indexOf(example));
  setText(example.text);
  showOptions();
}

function showExamples() {
  const groups = [...new Set(catalogue.examples.map((e) => e.group))];
  byId("examples").replaceChildren(el("option", { value: "" }, "choose one"), ...groups.map((group) => {
    const options = catalogue.examples.map((e, i) => [e, i]).filter(([e]) => e.group === group);
    return el("optgroup", { label: group }, ...options.map(([e, i]) => el("option", { value: i }, e.title)));
  }));
  byId("examples").addEventListener("change", (e) => {
    if (e.target.value !== "") useExample(catalogue.examples[Number(e.target.value)]);
  });
}

// ------------------------------------------------------------------------------------ editor

const text = byId("text");
const marks = byId("marks");

function setText(value) {
  text.value = value;
  text.rows = Math.max(5, Math.min(14, value.split("\n").length + 1));
  state.text = value;
  changed(0);
}

/** Underlines places: the layer below the text has the same text, with the places marked. */
function underline(errors) {
  const lines = text.value.split("\n");
  marks.replaceChildren();
  lines.forEach((line, i) => {
    const here = errors.filter((e) => e.line === i + 1).sort((a, b) => a.column - b.column);
    const chars = [...line];
    let at = 0;
    for (const error of here) {
      const from = Math.max(at, Math.min(error.column - 1, chars.length));
      const to = Math.max(from, Math.min(from + Math.max(error.length, 1), chars.length));
      marks.append(chars.slice(at, from).join(""), el("mark", {}, from < to ? chars.slice(from, to).join("") : " "));
      at = Math.max(at, to);
    }
    marks.append(chars.slice(at).join(""), "\n");
  });
  follow();
}

function follow() {
  marks.scrollTop = text.scrollTop;
  marks.scrollLeft = text.scrollLeft;
}

/** Returns the index in the text of a line and a column, both counted from 1. */
function indexOf(line, column) {
  const lines = text.value.split("\n");
  const before = lines.slice(0, line - 1).reduce((sum, l) => sum + l.length + 1, 0);
  return before + [...(lines[line - 1] ?? "")].slice(0, column - 1).join("").length;
}

function showErrors(answer) {
  const errors = answer.errors ?? [];
  underline(errors);
  const list = errors.slice(0, 12).map((e) => el("button", { onclick: () => {
    const from = indexOf(e.line, e.column);
    text.focus();
    text.setSelectionRange(from, from + Math.max(1, e.length));
  } }, `line ${e.line}, column ${e.column}: ${e.message}`, e.hint ? el("span", { class: "hint" }, ` (${e.hint})`) : ""));
  if (!errors.length) list.push(el("p", { class: "error" }, answer.message, answer.hint ? el("span", { class: "hint" }, ` (${answer.hint})`) : ""));
  byId("errors").replaceChildren(...list);
  document.body.classList.add("wrong");
}

// ----------------------------------------------------------------------------------- answers

/** Notes a change, and asks about it a moment later. */
function changed(wait = 250) {
  clearTimeout(timer);
  timer = setTimeout(judge, wait);
}

async function judge() {
  const number = ++asked;
  byId("about").textContent = "…";
  byId("results").classList.add("stale");
  byId("pictures").classList.add("stale");
  history.replaceState(null, "", `${location.pathname}${location.search}${await fragment()}`);
  if (!state.text.trim() && state.kind !== "atlas") {
    byId("about").textContent = "";
    byId("errors").replaceChildren();
    document.body.classList.remove("wrong");
    byId("results").classList.remove("stale");
    byId("results").replaceChildren(el("p", { class: "muted" }, "Type, drop a file, or choose an example."));
    byId("cases").replaceChildren();
    byId("pictures").replaceChildren();
    byId("pictures").classList.remove("stale");
    underline([]);
    return;
  }
  let answer;
  try {
    answer = await ask("/api/judge", { ...state, page });
  } catch (error) {
    answer = { message: error.message, hint: "is `consistory serve` still running?" };
  }
  if (number !== asked || answer.superseded) return;
  byId("about").textContent = answer.millis === undefined ? "" : duration(answer.millis);
  if (!answer.cases) return showErrors(answer);
  byId("errors").replaceChildren();
  document.body.classList.remove("wrong");
  underline([]);
  Object.assign(look, answer.look);
  showAnswer(answer.cases, 0);
}

function showAnswer(cases, index) {
  stop();
  const buttons = cases.length < 2 ? [] : cases.map((c, i) => el("button", { "aria-pressed": i === index, onclick: () => showAnswer(cases, i) }, c.title));
  byId("cases").replaceChildren(...(buttons.length ? [el("div", { class: "tools" }, ...buttons)] : []));
  const { left, picture } = caseParts(cases[index]);
  byId("results").classList.remove("stale");
  byId("results").replaceChildren(left);
  byId("pictures").replaceChildren(...picture.children);
  byId("pictures").classList.remove("stale");
  byId("tip").hidden = true;
}

// ------------------------------------------------------------------------------------- share

const encode = (bytes) => btoa(String.fromCharCode(...bytes)).replaceAll("+", "-").replaceAll("/", "_").replace(/=+$/, "");
const decode = (textual) => Uint8Array.from(atob(textual.replaceAll("-", "+").replaceAll("_", "/")), (c) => c.charCodeAt(0));

async function through(bytes, stream) {
  return new Uint8Array(await new Response(new Blob([bytes]).stream().pipeThrough(stream)).arrayBuffer());
}

/** Packs what is on the page into a fragment; a long text is left out. */
async function fragment() {
  if (state.text.length > 50000) return "";
  const packed = await through(new TextEncoder().encode(JSON.stringify(state)), new CompressionStream("deflate-raw"));
  return packed.length > 30000 ? "" : `#1.${encode(packed)}`;
}

async function unpack(hash) {
  if (!hash.startsWith("#1.")) return null;
  try {
    const found = JSON.parse(new TextDecoder().decode(await through(decode(hash.slice(3)), new DecompressionStream("deflate-raw"))));
    const isText = (v) => typeof v === "string";
    if (!KINDS[found.kind] || !isText(found.text) || !Array.isArray(found.models)) return null;
    return { kind: found.kind, text: found.text, models: found.models.filter(isText), object: isText(found.object) ? found.object : "", order: isText(found.order) ? found.order : "session", against: isText(found.against) ? found.against : "sc" };
  } catch {
    return null;
  }
}

// ------------------------------------------------------------------------------------- start

async function take(file) {
  if (file.size > 4 << 20) return showErrors({ message: `${file.name} is too large for this page`, hint: "use `consistory check` for files over 4 MB" });
  const name = file.name.toLowerCase();
  const kind = name.endsWith(".litmus") ? "litmus" : name.endsWith(".m") ? "protocol" : name.endsWith(".cat") ? "model" : "history";
  if (kind !== state.kind) Object.assign(state, { kind, models: kind === "litmus" ? ["sc", "tso"] : [] });
  if (kind === "history") state.models = [];
  byId("examples").value = "";
  setText(await file.text());
  showOptions();
}

text.addEventListener("input", () => {
  const before = familyOf(state.text);
  byId("examples").value = "";
  state.text = text.value;
  underline([]);
  if (state.kind === "history" && familyOf(state.text) !== before) {
    state.models = [];
    showOptions();
  }
  changed();
});
text.addEventListener("scroll", follow);
byId("file").addEventListener("change", (e) => e.target.files[0] && take(e.target.files[0]));
byId("share").addEventListener("click", async () => {
  const address = `${location.origin}${location.pathname}${await fragment()}`;
  try {
    await navigator.clipboard.writeText(address);
    byId("about").textContent = "copied; the part from # on works on every machine that runs consistory serve";
  } catch {
    byId("about").textContent = "the address bar holds what is on this page";
  }
});
for (const kind of ["dragover", "dragleave", "drop"]) {
  document.addEventListener(kind, (e) => {
    e.preventDefault();
    document.body.classList.toggle("dropping", kind === "dragover");
    if (kind === "drop" && e.dataTransfer.files[0]) take(e.dataTransfer.files[0]);
  });
}
addEventListener("keydown", pictureKey);
addEventListener("hashchange", async () => {
  const found = await unpack(location.hash);
  if (found && JSON.stringify(found) !== JSON.stringify(state)) {
    Object.assign(state, found);
    setText(found.text);
    showOptions();
  }
});
isDark.addEventListener("change", () => changed(0));

(async () => {
  try {
    catalogue = await ask("/api/start", {});
  } catch (error) {
    return showErrors({ message: error.message, hint: "reload the page" });
  }
  showExamples();
  const shared = await unpack(location.hash);
  if (shared) {
    Object.assign(state, shared);
    setText(shared.text);
    showOptions();
  } else {
    useExample(catalogue.examples[0]);
  }
})();
