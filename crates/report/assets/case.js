"use strict";
// A case on a page: its table of results, the picture of the chosen result, and the proof step by
// step. Reports and the local page share this file. Everything that comes from an input enters the
// page through textContent or attributes, never as markup.

const SVG = "http://www.w3.org/2000/svg";

/** Builds an element; children are nodes or texts. */
function el(name, attributes = {}, ...children) {
  const node = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (key.startsWith("aria-") && value !== undefined) node.setAttribute(key, String(value));
    else if (value === undefined || value === null || value === false) continue;
    else if (key.startsWith("on")) node.addEventListener(key.slice(2), value);
    else node.setAttribute(key, value === true ? "" : value);
  }
  node.append(...children.filter((child) => child !== null && child !== undefined));
  return node;
}

/** Builds an SVG element. */
function svgEl(name, attributes = {}, ...children) {
  const node = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
  node.append(...children);
  return node;
}

/** Builds an icon of one path in a square of 10 units. */
function icon(d) {
  return svgEl("svg", { viewBox: "0 0 10 10", "aria-hidden": "true" }, svgEl("path", { d }));
}

const ICONS = { previous: "M8 0v10L2 5z", next: "M2 0v10l6-5z", play: "M1 0v10l9-5z", pause: "M1 0h3v10H1zM6 0h3v10H6z" };

/** Formats a duration in milliseconds in a sensible unit. */
function duration(millis) {
  if (millis === undefined || millis === null) return "";
  if (millis < 1) return `${Math.round(millis * 1000)} µs`;
  if (millis < 1000) return `${millis.toFixed(millis < 10 ? 1 : 0)} ms`;
  return `${(millis / 1000).toFixed(1)} s`;
}

/** Colours and meanings of relations; the page fills it in. */
const look = { palette: { "": ["#7a3e9d", "#cf9bef"] }, meanings: {} };

// -------------------------------------------------------------------------------------- case

const shown = { row: 0, step: 0, scene: 0, beside: false, view: "", core: false, hidden: new Set(), timer: 0 };

/** Words that tables print in a colour of their own. */
const WORDS = new Set(["consistent", "violation", "undecided", "allowed", "forbidden", "separated", "implied", "holds", "fails", "unproved"]);

/** Returns the class of a cell whose first word is a verdict, or nothing. */
function wordClass(text) {
  const word = String(text).split(" ")[0];
  return WORDS.has(word) ? word : "";
}

/** Builds what stands in a cell: a verdict with its sign, or the text. */
function wordOf(text) {
  return wordClass(text) ? el("span", { class: "verdict" }, text) : text;
}

/** Lets a path be broken after its slashes. */
function breakable(text) {
  return String(text).split("/").flatMap((part, i) => (i ? ["/", el("wbr"), part] : [part]));
}

/** Number of facts that stand above the results; a longer list stands below, but for its first entry. */
const FEW_FACTS = 5;

/** Facts whose numbers are written in groups of three digits. */
const COUNTED = new Set(["operations", "sessions", "histories", "histories decided", "states", "transactions", "threads"]);

/** Builds the list of names and values below a heading. */
function factsOf(facts) {
  const shownValue = (name, value) => (COUNTED.has(name) && /^\d+$/.test(value) ? Number(value).toLocaleString("en") : value);
  return el("dl", { class: facts.length > FEW_FACTS ? "facts many" : "facts" }, ...facts.map(([name, value]) =>
    el("div", {}, el("dt", {}, name), " ", el("dd", {}, shownValue(name, value)))));
}

/** Builds the view of a case; `links` stands above its heading. */
function caseView(data, links) {
  const { left, picture } = caseParts(data, links);
  return el("div", { class: "case" }, left, picture);
}

/** Chooses the row that is shown first: a violation with a picture, else any with a picture. */
function firstRow(data) {
  const pictured = (row) => (row.scenes ?? []).length > 0;
  const wrong = data.rows.findIndex((row) => pictured(row) && row.cells.some((cell) => String(cell).startsWith("violation")));
  if (wrong >= 0) return wrong;
  const condition = data.columns.indexOf("condition");
  const wanted = data.rows.findIndex((row) => pictured(row) && condition >= 0 && row.cells[condition]);
  return wanted >= 0 ? wanted : Math.max(0, data.rows.findIndex(pictured));
}

/** Builds the two parts of a case: results and steps, and the pictures. */
function caseParts(data, links, row) {
  shown.row = row ?? firstRow(data);
  shown.hidden = new Set();
  shown.beside = Boolean(data.beside);
  const side = el("div", { class: "side card" });
  const pictures = el("div", { class: "pictures" });
  const body = el("tbody");
  const map = data.map === undefined ? null : data.scenes[data.map];
  const mapPanel = map ? el("section", { class: "picture map", "aria-label": "map" }) : null;
  const choose = (row) => {
    if (row < 0 || row >= data.rows.length) return;
    Object.assign(shown, { row, step: 0, scene: 0, view: "" });
    stop();
    [...body.children].forEach((tr, i) => (i === row ? tr.setAttribute("aria-current", "true") : tr.removeAttribute("aria-current")));
    requestAnimationFrame(() => {
      const current = body.children[row];
      const isSeen = current.offsetTop >= table.scrollTop && current.offsetTop + current.offsetHeight <= table.scrollTop + table.clientHeight;
      if (!isSeen) table.scrollTop = current.offsetTop - 40;
    });
    if (mapPanel) mapPanel.querySelectorAll("[data-edge]").forEach((g) => g.classList.toggle("lit", (data.links ?? [])[Number(g.dataset.edge)] === row));
    showRow(data, data.rows[row], side, pictures);
  };
  data.rows.forEach((row, i) => {
    const cells = row.cells.map((value, column) => {
      const text = data.columns[column] === "time" ? duration(value) : String(value ?? "");
      const content = column === 0 ? el("button", { class: "plain", onclick: (e) => { e.stopPropagation(); choose(i); } }, text) : wordOf(text);
      return el("td", { class: data.columns[column] === "time" ? "number" : wordClass(text) }, content);
    });
    body.append(el("tr", { class: "link", onclick: () => choose(i) }, ...cells));
  });
  const table = el("div", { class: "results", tabindex: 0, role: "region", "aria-label": "results" },
    el("table", {}, el("thead", {}, el("tr", {}, ...data.columns.map((name) => el("th", { scope: "col", class: name === "time" ? "number" : undefined }, name)))), body));
  const history = data.text ? el("details", { open: data.text.length < 1500 }, el("summary", {}, "input"), el("pre", { tabindex: 0, class: "input" }, data.text), copyButton("copy", data.text)) : null;
  const recheck = data.recheck ? el("p", {}, el("span", { class: "muted" }, "Check it again: "), el("code", {}, ...words(data.recheck)), " ", copyButton("copy", data.recheck)) : null;
  const isLong = data.facts.length > FEW_FACTS;
  const left = el("div", { class: "left" }, el("section", { class: "card", "aria-label": "verdict" }, links ?? "", el("h1", {}, ...breakable(data.title)),
    isLong ? el("p", { class: "finding" }, data.facts[0][1]) : factsOf(data.facts), table),
    side,
    isLong ? el("section", { class: "card", "aria-label": "facts" }, factsOf(data.facts.slice(1))) : null,
    history || recheck ? el("section", { class: "card", "aria-label": "input" }, history, recheck) : null);
  const picture = el("div", { class: "right" }, mapPanel, pictures, ...(data.charts ?? []).map(chart));
  if (map) {
    showPicture(map, mapPanel);
    mapPanel.querySelector("svg").setAttribute("role", "group");
    mapPanel.querySelectorAll("[data-edge]").forEach((g) => {
      const row = (data.links ?? [])[Number(g.dataset.edge)];
      if (row === undefined || row === null) return;
      const lead = () => {
        choose(row);
        pictures.scrollIntoView({ block: "nearest" });
      };
      g.classList.add("choice");
      g.setAttribute("tabindex", 0);
      g.setAttribute("role", "button");
      g.setAttribute("aria-label", data.rows[row].cells.slice(0, 3).join(", "));
      g.addEventListener("click", lead);
      g.addEventListener("keydown", (e) => {
        if (e.key !== "Enter" && e.key !== " ") return;
        e.preventDefault();
        lead();
      });
    });
  }
  if (data.rows.length) choose(shown.row);
  return { left, picture, choose };
}

/** Splits a command into words that lines are not broken in, as after the hyphens of an option. */
function words(command) {
  return command.split(" ").flatMap((word, i) => [i ? " " : "", el("span", { class: "word" }, word)]);
}

function copyButton(name, text) {
  const button = el("button", { class: "small", onclick: async () => {
    try {
      await navigator.clipboard.writeText(text);
    } catch {
      const area = el("textarea", { "aria-label": "text to copy" }, text);
      document.body.append(area);
      area.select();
      document.execCommand("copy");
      area.remove();
    }
    button.textContent = "copied";
    setTimeout(() => (button.textContent = name), 1200);
  } }, name);
  return button;
}

function showRow(data, row, side, pictures) {
  const scenes = (row.scenes ?? []).map((index) => data.scenes[index]);
  side.replaceChildren();
  pictures.replaceChildren();
  shown.go = null;
  if (!scenes.length && !data.charts) pictures.append(el("p", { class: "muted empty" }, row.text ? "This result has no picture; the explanation says it in words." : "This result has no picture."));
  pictures.hidden = !pictures.childNodes.length && !scenes.length;
  const steps = el("div");
  side.append(steps);
  let panels = [];
  const activate = (index, step = 0) => {
    shown.scene = index;
    stop();
    steps.replaceChildren();
    panels.forEach(({ scene, panel }) => panel.classList.toggle("active", panels.length > 1 && scene === scenes[index]));
    const at = panels.find(({ scene }) => scene === scenes[index]);
    shown.zoom = at?.zoom();
    if (at && displayed(scenes[index]).scene.steps.length) steps.append(stepper(scenes[index], at.panel, step));
  };
  const arrange = (step = 0) => {
    pictures.replaceChildren();
    const isMany = scenes.length > 1;
    if (isMany) {
      const names = distinctNames(scenes.map((scene) => scene.scene.title));
      const tabs = scenes.map((scene, i) => el("button", { "aria-pressed": !shown.beside && i === shown.scene, title: scene.scene.title, onclick: () => { shown.beside = false; shown.scene = i; arrange(); } }, names[i]));
      pictures.append(el("div", { class: "tools", role: "group", "aria-label": "pictures" }, el("span", { class: "group" }, ...tabs,
        el("button", { "aria-pressed": shown.beside, onclick: () => { shown.beside = !shown.beside; arrange(); } }, "side by side"))));
    }
    const visible = isMany && shown.beside ? scenes : scenes.slice(shown.scene, shown.scene + 1);
    panels = visible.map((scene) => {
      const panel = el("section", { class: "picture", "aria-label": scene.scene.title });
      let zoom = showPicture(scene, panel);
      panel.addEventListener("redrawn", (e) => { zoom = e.detail; shown.zoom = zoom; });
      // The core of a proof may have its own steps. All pictures show their cores, or none does.
      panel.addEventListener("core", () => {
        const place = panels.findIndex((other) => other.panel === panel);
        const count = displayed(scenes[shown.scene]).scene.steps.length;
        shown.core = !shown.core;
        arrange(displayed(scenes[shown.scene]).scene.steps.length === count ? shown.step : 0);
        panels[place].panel.querySelector("button.core").focus();
      });
      panel.addEventListener("pointerdown", () => { if (panels.length > 1 && scenes[shown.scene] !== scene) activate(scenes.indexOf(scene)); });
      return { scene, panel, zoom: () => zoom };
    });
    // Pictures are next to each other only if they are still readable.
    const widths = visible.map((scene) => Math.min(...Object.values(displayed(scene).views).map((view) => view.width)));
    const grid = el("div", { class: "panels" }, ...panels.map(({ panel }) => panel));
    grid.style.setProperty("--least", `${Math.round(Math.max(320, ...widths.map((width) => width * SMALLEST_SCALE)))}px`);
    pictures.append(grid);
    activate(shown.scene, step);
  };
  // If pictures are side by side, the steps are those of the first picture that is not empty.
  if (shown.beside) shown.scene = Math.max(0, scenes.findIndex((scene) => scene.scene.nodes.length));
  if (scenes.length) arrange();
  if (row.text) {
    const hasSteps = scenes.some((scene) => scene.scene.steps.length);
    side.append(el("details", { open: !hasSteps }, el("summary", {}, "explanation"), el("pre", { tabindex: 0 }, row.text), copyButton("copy as text", row.text)));
  }
  if (row.certificate) {
    const json = JSON.stringify(row.certificate);
    const name = `certificate-${String(row.cells[0]).replace(/[^\w.-]+/g, "-")}.json`;
    const url = URL.createObjectURL(new Blob([json], { type: "application/json" }));
    side.append(el("p", {}, el("a", { href: url, download: name }, "download the certificate")));
  }
  side.hidden = side.childElementCount === 1 && !steps.childNodes.length;
}

/** Leaves out the words that all names end with. */
function distinctNames(names) {
  const parts = names.map((name) => name.split(" "));
  const least = Math.min(...parts.map((words) => words.length));
  let same = 0;
  while (same < least - 1 && new Set(parts.map((words) => words[words.length - 1 - same])).size === 1) same++;
  return parts.map((words) => words.slice(0, words.length - same).join(" "));
}

// ------------------------------------------------------------------------------------ charts

const LINES = [["#0b62a8", "#6cb8f5"], ["#c2410c", "#ff8a5c"], ["#5b6570", "#aab4bf"], ["#00795f", "#35c9a5"]];

/** Draws measurements over time as lines, with bands where something was done to the system. */
function chart(data) {
  const [width, height, left, bottom] = [900, 190, 56, 22];
  const length = Math.max(1, ...data.series.map(([, values]) => values.length));
  const seconds = Math.max(length * data.interval, ...data.bands.map(([, , end]) => end));
  const top = Math.max(1e-9, ...data.series.flatMap(([, values]) => values.filter((v) => v !== null)));
  const step = 10 ** Math.floor(Math.log10(top));
  const most = [1, 2, 5, 10].map((k) => k * step).find((v) => v >= top) ?? top;
  const x = (time) => left + (time / seconds) * (width - left - 12);
  const y = (value) => 20 + (1 - value / most) * (height - bottom - 20);
  const svg = svgEl("svg", { role: "img", class: "chart", viewBox: `0 0 ${width} ${height}`, "aria-label": `${data.title}, at most ${most} ${data.unit}` });
  const write = (at, text, anchor, name) => {
    const node = svgEl("text", { x: at[0], y: at[1], "text-anchor": anchor, class: name });
    node.textContent = text;
    svg.append(node);
  };
  let free = -1;
  data.bands.forEach(([label, from, to]) => {
    const box = svgEl("rect", { class: "band", x: x(from), y: 14, width: Math.max(2, x(to) - x(from)), height: height - bottom - 14 });
    hint(box, `${label}\n${from.toFixed(2)} s to ${to.toFixed(2)} s`);
    svg.append(box);
    // A label that would overlap the previous one is shown only in the hint.
    if (x(from) >= free && x(from) + label.length * 6.2 < width) {
      write([x(from) + 2, 11], label, "start", "band-name");
      free = x(from) + label.length * 6.2 + 8;
    }
  });
  for (const part of [0, 0.5, 1]) {
    svg.append(svgEl("path", { class: "grid", d: `M${left} ${y(most * part)}H${width - 12}` }));
    write([left - 6, y(most * part) + 4], `${+(most * part).toPrecision(3)}`, "end", "tick");
  }
  for (let i = 0; i <= 5; i++) write([x((seconds * i) / 5), height - 6], `${+((seconds * i) / 5).toFixed(1)} s`, i === 5 ? "end" : "middle", "tick");
  data.series.forEach(([name, values], i) => {
    let d = "";
    let pen = "M";
    values.forEach((value, k) => {
      if (value === null) return (pen = "M");
      d += `${pen}${x((k + 1) * data.interval).toFixed(1)} ${y(value).toFixed(1)}`;
      pen = "L";
    });
    const line = svgEl("path", { class: "series", d, stroke: LINES[i % LINES.length][isDark.matches ? 1 : 0] });
    hint(line, name);
    svg.append(line);
  });
  const legend = data.series.map(([name], i) => {
    const swatch = el("span", { class: "swatch" });
    swatch.style.borderColor = LINES[i % LINES.length][isDark.matches ? 1 : 0];
    return el("span", { class: "relation" }, swatch, name);
  });
  return el("section", { class: "picture", "aria-label": data.title }, el("h2", {}, `${data.title} (${data.unit})`), el("div", { class: "legend" }, ...legend), svg);
}

// ------------------------------------------------------------------------------------- steps

function stop() {
  clearInterval(shown.timer);
  shown.timer = 0;
}

/** Builds the list of steps with a slider and buttons, and the state after the current step. */
function stepper(scene, picture, start) {
  const { steps, nodes } = displayed(scene).scene;
  const sentences = linker(nodes, picture);
  const items = steps.map((step, i) => el("li", {}, el("button", { class: "plain", onclick: () => go(i + 1) }, ...sentences(step.sentence))));
  const slider = el("input", { type: "range", min: 0, max: steps.length, value: 0, "aria-label": "step", oninput: (e) => go(Number(e.target.value)) });
  const where = el("span", { class: "muted", role: "status" });
  const hasState = steps.some((step) => step.state);
  const state = el("div", { class: "state" });
  const button = (id, label, key, onclick) => el("button", { id, class: "icon", "aria-label": label, title: key ? `${label} ( ${key} )` : label, onclick }, icon(ICONS[id]));
  const playing = (isOn) => {
    play.replaceChildren(icon(isOn ? ICONS.pause : ICONS.play));
    play.setAttribute("aria-label", isOn ? "pause" : "play");
    play.title = isOn ? "pause" : "play";
  };
  const play = button("play", "play", "", () => {
    if (shown.timer) return stop(), playing(false);
    playing(true);
    if (shown.step >= steps.length) go(0);
    shown.timer = setInterval(() => {
      if (shown.step >= steps.length) return stop(), playing(false);
      go(shown.step + 1);
    }, 1200);
  });
  const go = (step) => {
    shown.step = Math.max(0, Math.min(steps.length, step));
    slider.value = shown.step;
    where.textContent = shown.step ? `step ${shown.step} of ${steps.length}` : steps.length === 1 ? "1 step" : `${steps.length} steps`;
    items.forEach((item, i) => {
      item.classList.toggle("done", i + 1 < shown.step);
      i + 1 === shown.step ? item.setAttribute("aria-current", "step") : item.removeAttribute("aria-current");
    });
    if (shown.step) {
      const item = items[shown.step - 1];
      const above = item.offsetTop - list.scrollTop;
      if (above < 0 || above + item.offsetHeight > list.clientHeight) list.scrollTop = item.offsetTop - list.clientHeight / 3;
    }
    light(scene, picture);
    if (hasState) state.replaceChildren(stateTable(steps, shown.step));
  };
  shown.go = go;
  const buttons = el("div", { class: "stepper" },
    el("span", { class: "group" },
      button("previous", "previous step", "p", () => go(shown.step - 1)),
      play,
      button("next", "next step", "n", () => go(shown.step + 1))),
    slider, where);
  const list = el("ol", { class: "steps" }, ...items);
  queueMicrotask(() => go(start));
  return el("section", { "aria-label": "steps" }, buttons, hasState ? state : null, list);
}

/** Returns a function that marks references to nodes in a sentence; the pointer on one finds its node. */
function linker(nodes, picture) {
  const index = new Map(nodes.map((node, i) => [node.id, i]));
  const point = (node, isOn) => picture.querySelector(`[data-node="${node}"]`)?.classList.toggle("pointed", isOn);
  return (sentence) => sentence.split(/([^\s,;()]+:\d+|-[\w ]+->)/).map((part) => {
    if (/^-[\w ]+->$/.test(part)) return el("span", { class: "arrow" }, part);
    const node = part.includes(":") ? index.get(part) : undefined;
    if (node === undefined) return part;
    return el("span", { class: "ref", onpointerenter: () => point(node, true), onpointerleave: () => point(node, false) }, part);
  });
}

/** Entries of a state that are shown without being asked for. */
const FEW_ENTRIES = 8;

/** Builds the table of the state after a step; what the step changed stands out. */
function stateTable(steps, step) {
  const state = steps[step - 1]?.state;
  if (!state) return el("p", { class: "muted" }, step ? "" : "Step through to see the state after each step.");
  const before = new Map(steps[step - 2]?.state ?? []);
  const isChanged = ([name, value]) => step > 1 && before.get(name) !== value;
  const line = ([name, value]) => {
    const old = before.get(name);
    const changed = isChanged([name, value]);
    return el("tr", changed ? { class: "changed" } : {}, el("th", { scope: "row" }, name),
      el("td", {}, changed && old !== undefined ? el("span", { class: "muted" }, `${old} → `) : "", value));
  };
  const table = (lines) => el("table", { class: "state" }, el("tbody", {}, ...lines.map(line)));
  if (state.length <= FEW_ENTRIES) return table(state);
  const changed = state.filter(isChanged);
  const all = el("details", { open: stateTable.isOpen }, el("summary", {}, `all ${state.length} entries of the state`), table(state));
  all.addEventListener("toggle", () => (stateTable.isOpen = all.open));
  return el("div", {}, changed.length ? table(changed) : el("p", { class: "muted" }, step > 1 ? "The state is as before." : "The start state."), all);
}
stateTable.isOpen = false;

/** Highlights what the current step is about: its edges, their premises, its nodes. */
function light(whole, picture) {
  const scene = displayed(whole);
  const svg = picture.querySelector("svg");
  if (!svg) return;
  const step = scene.scene.steps[shown.step - 1];
  svg.classList.toggle("stepping", Boolean(step) && (step.edges.length > 0 || step.nodes.length > 0));
  svg.querySelectorAll(".lit, .support, .past, .reached").forEach((node) => node.classList.remove("lit", "support", "past", "reached"));
  if (!step) return;
  // The calls that have taken effect stay visible, and the line through them ends at the last one.
  for (const { nodes } of scene.scene.steps.slice(0, shown.step)) {
    for (const node of nodes) {
      if (scene.scene.nodes[node].place === undefined) continue;
      svg.querySelector(`[data-node="${node}"]`)?.classList.add("past");
      svg.querySelectorAll(`[data-bead="${node}"]`).forEach((part) => part.classList.add("reached"));
    }
  }
  const nodes = new Set(step.nodes);
  for (const edge of step.edges) {
    svg.querySelector(`[data-edge="${edge}"]`)?.classList.add("lit");
    nodes.add(scene.scene.edges[edge].from).add(scene.scene.edges[edge].to);
    for (const premise of scene.scene.edges[edge].because ?? []) {
      svg.querySelector(`[data-edge="${premise}"]`)?.classList.add("support");
    }
  }
  for (const node of nodes) svg.querySelector(`[data-node="${node}"]`)?.classList.add("lit");
  svg.reveal?.([...nodes]);
}

// ----------------------------------------------------------------------------------- picture

const isDark = matchMedia("(prefers-color-scheme: dark)");

function colour(relation) {
  const [light, dark] = look.palette[relation] ?? look.palette[""];
  return isDark.matches ? dark : light;
}

/** Returns what is drawn of a picture: all of it, or the core of its proof. */
function displayed(picture) {
  return shown.core && picture.core ? picture.core : picture;
}

function showPicture(whole, picture) {
  const scene = displayed(whole);
  if (!scene.scene.nodes.length) {
    picture.append(el("h2", {}, scene.scene.title), el("p", { class: "muted empty" }, scene.scene.caption));
    return { by() {}, fit() {} };
  }
  const views = Object.keys(scene.views);
  // A picture with times and without edges is first shown by time.
  const first = scene.views.time && !scene.scene.edges.length ? "time" : views[0];
  const chosen = scene.views[shown.view] ? shown.view : first;
  const view = scene.views[chosen];
  const stage = el("div", { class: "stage" });
  const svg = draw(scene.scene, view, chosen === "time");
  stage.append(svg);
  const part = el("span", { class: "muted", role: "status" });
  const zoom = panAndZoom(svg, view, chosen === "time", (isPart) => {
    stage.classList.toggle("part", isPart);
    part.textContent = isPart ? "Drag or use the arrow keys to see the rest." : "";
  });
  const redraw = () => {
    picture.replaceChildren();
    const zoom = showPicture(whole, picture);
    light(whole, picture);
    picture.dispatchEvent(new CustomEvent("redrawn", { detail: zoom }));
  };
  const names = { time: "time view", order: "order view" };
  const choice = (name) => el("button", { "aria-pressed": name === chosen, onclick: () => { shown.view = name; redraw(); } }, names[name] ?? name);
  const tools = el("div", { class: "tools", role: "toolbar", "aria-label": "picture" },
    views.length > 1 ? el("span", { class: "group" }, ...views.map(choice)) : null,
    whole.core ? el("button", { class: "core", "aria-pressed": scene !== whole, title: "show only what the proof is about", onclick: () => picture.dispatchEvent(new CustomEvent("core")) }, "core only") : null,
    el("span", { class: "group" },
      el("button", { onclick: () => zoom.by(0.8), "aria-label": "zoom out", title: "zoom out ( - )" }, "−"),
      el("button", { onclick: zoom.fit, title: "fit ( 0 )" }, "fit"),
      el("button", { onclick: () => zoom.by(1.25), "aria-label": "zoom in", title: "zoom in ( + )" }, "+")));
  picture.append(el("h2", {}, scene.scene.title), scene.scene.caption ? el("p", { class: "muted" }, ...linker(scene.scene.nodes, picture)(scene.scene.caption)) : "", tools, stage, part,
    legend(scene, chosen, svg) ?? "", ...scene.scene.notes.map((note) => el("p", { class: "muted" }, note)));
  return zoom;
}

/** Builds the line below a picture that says what its lines and boxes mean, and switches relations. */
function legend({ scene, views }, chosen, svg) {
  const parts = [];
  const sample = (kind, paint) => {
    const swatch = el("span", { class: `swatch ${kind}` });
    swatch.style.borderColor = paint;
    return swatch;
  };
  const relations = [...new Set(scene.edges.map((edge) => edge.relation))].filter(Boolean);
  if (chosen === "order" && !views.lattice) {
    for (const relation of relations.length > 12 ? [] : relations) {
      const of = scene.edges.filter((edge) => edge.relation === relation);
      const kind = of.every((edge) => edge.basis === "derived") ? "dashed" : of.every((edge) => edge.basis === "assumed") ? "dotted" : "";
      const box = el("input", { type: "checkbox", checked: !shown.hidden.has(relation), onchange: (e) => {
        e.target.checked ? shown.hidden.delete(relation) : shown.hidden.add(relation);
        hide();
      } });
      const meaning = look.meanings[relation];
      parts.push(el("label", { class: "relation", "data-relation": relation }, box, sample(kind, colour(relation)), el("b", {}, relation), meaning ? ` ${meaning}` : ""));
    }
    const note = (kind, words) => parts.push(el("span", { class: "relation" }, sample(kind, "currentColor"), words));
    if (scene.edges.some((edge) => edge.basis === "derived")) note("dashed", "derived by a rule");
    if (scene.edges.some((edge) => edge.basis === "assumed")) note("dotted", "assumed in this case");
  }
  const hide = () => svg.querySelectorAll("[data-relation]").forEach((g) => (g.style.display = shown.hidden.has(g.dataset.relation) ? "none" : ""));
  hide();
  if (scene.nodes.some((node) => node.kind === "pending")) parts.push("dashed box: not returned by then, or its outcome is unknown");
  else if (scene.nodes.some((node) => node.kind === "aborted")) parts.push("dashed box: aborted");
  return parts.length ? el("div", { class: "legend", role: "group", "aria-label": "legend" }, ...parts.map((part) => (typeof part === "string" ? el("span", {}, part) : part))) : null;
}

/** Draws a view; the geometry was computed when the report was written. */
function draw(scene, view, isTime) {
  const svg = svgEl("svg", { role: "img", tabindex: 0, preserveAspectRatio: "xMidYMin meet", "aria-label": `${scene.title}. ${scene.caption}`, viewBox: `0 0 ${view.width} ${view.height}` });
  for (const [x, y, width, height] of view.lanes) if (height > 0) svg.append(svgEl("rect", { class: "lane", x, y, width, height, rx: 8 }));
  for (const [x, y, label] of view.ticks ?? []) {
    svg.append(svgEl("path", { class: "axis", d: `M${x} ${view.lanes[0]?.[1] ?? 0}V${y - 10}` }));
    const text = svgEl("text", { class: "tick", x, y });
    text.textContent = label;
    svg.append(text);
  }
  view.bands.forEach(([x, y, width, height], i) => {
    svg.append(svgEl("rect", { class: "band", x, y, width, height }));
    const label = svgEl("text", { class: "band-name", x: x + 3, y: y + 12 });
    label.textContent = scene.bands[i].label;
    svg.append(label);
  });
  // The names of lanes stay visible when the picture moves, on their own background.
  const heads = svgEl("g", { class: "heads" });
  const firstBar = Math.min(...view.nodes.filter(Boolean).map((node) => node[0]));
  view.names.forEach(([x, y], i) => {
    const [left, top, width, height] = view.lanes[i] ?? [x, y, 0, 1];
    if (height === 0) return;
    heads.append(isTime
      ? svgEl("rect", { x: left - 12, y: top - 2, width: Math.max(0, firstBar - left + 6), height: height + 4 })
      : svgEl("rect", { x: left, y: 0, width, height: y + 10 }));
    const name = svgEl("text", { class: "name", x, y, "text-anchor": isTime ? "start" : "middle" });
    name.textContent = scene.lanes[i]?.name ?? "";
    heads.append(name);
  });
  const rank = { context: 0, premise: 1, cycle: 2 };
  const order = scene.edges.map((_, i) => i).sort((a, b) => rank[scene.edges[a].role] - rank[scene.edges[b].role] || a - b);
  for (const i of order) {
    const route = view.edges[i];
    if (route) svg.append(drawEdge(scene, i, route));
  }
  const beads = view.beads ?? [];
  // The linearization: a line from one call to the next behind the boxes, and a bead on each.
  beads.forEach(([node, x, y], i) => {
    if (i) svg.append(svgEl("path", { class: "chain", "data-bead": node, d: `M${beads[i - 1][1]} ${beads[i - 1][2]}L${x} ${y}` }));
  });
  scene.nodes.forEach((node, i) => {
    const box = view.nodes[i];
    if (box) svg.append(drawNode(node, i, box, beads.length === 0));
  });
  for (const [node, x, y] of beads) {
    const words = String(scene.nodes[node].place);
    const half = 4.5 + 3 * words.length;
    const text = svgEl("text", { x, y: y + 3.2 });
    text.textContent = words;
    svg.append(svgEl("g", { class: "bead", "data-bead": node }, svgEl("rect", { x: x - half, y: y - 7.5, width: 2 * half, height: 15, rx: 7.5 }), text));
  }
  svg.append(heads);
  return svg;
}

function drawEdge(scene, i, route) {
  const edge = scene.edges[i];
  const paint = colour(edge.relation);
  const width = edge.role === "cycle" ? 2.4 : 1.3;
  const d = rounded(route.points);
  const isStraight = route.points.length === 2 && route.points[0][0] === route.points[1][0];
  const group = svgEl("g", { class: `edge ${edge.basis}${isStraight ? " straight" : ""}`, "data-edge": i, "data-relation": edge.relation });
  group.append(svgEl("path", { class: "halo", d, "stroke-width": width + 3 }), svgEl("path", { class: "line", d, stroke: paint, "stroke-width": width }));
  const [tip, before] = [route.points.at(-1), route.points.at(-2)];
  const length = Math.hypot(tip[0] - before[0], tip[1] - before[1]) || 1;
  const [dx, dy] = [(tip[0] - before[0]) / length, (tip[1] - before[1]) / length];
  const [bx, by] = [tip[0] - dx * 9, tip[1] - dy * 9];
  group.append(svgEl("polygon", { points: `${tip} ${bx - dy * 4},${by + dx * 4} ${bx + dy * 4},${by - dx * 4}`, fill: paint }));
  if (edge.relation) {
    const [x, y, w, h] = route.label;
    const label = svgEl("text", { x: x + w / 2, y: y + 11, fill: paint });
    label.textContent = edge.relation;
    group.append(svgEl("rect", { x, y, width: w, height: h, rx: 3 }), label);
  }
  const from = scene.nodes[edge.from].id;
  const to = scene.nodes[edge.to].id;
  const meaning = look.meanings[edge.relation];
  const relation = edge.relation ? ` (${edge.relation}${meaning ? `: ${meaning}` : ""})` : "";
  hint(group, `${from} → ${to}${relation}${edge.why ? `\n${edge.why}` : ""}`);
  return group;
}

function drawNode(node, i, [x, y, width, height], isNumbered) {
  const group = svgEl("g", { class: `node ${node.kind} ${node.emphasis}`, "data-node": i }, svgEl("rect", { x, y, width, height, rx: 6 }));
  const first = y + height / 2 - ((node.lines.length - 1) * 17) / 2 + 4.5;
  node.lines.forEach((line, k) => {
    const text = svgEl("text", { x: x + width / 2, y: first + k * 17 });
    text.textContent = line;
    group.append(text);
  });
  if (node.place && isNumbered) {
    const place = svgEl("text", { class: "place", x: x + 4, y: y + 10 });
    place.textContent = node.place;
    group.append(place);
  }
  const time = node.start === undefined ? "" : `\nfrom ${node.start} to ${node.end ?? "(no return)"}`;
  const words = node.kind === "gap" ? node.lines.join("") : `${node.id}  ${node.lines.join("; ")}`;
  // A detail of several lines contains all text of the box.
  const text = node.kind === "transaction" || node.kind === "aborted" ? `${node.id}  ${node.detail}` : `${words}${node.detail ? `\n${node.detail}` : ""}`;
  hint(group, `${text}${time}${node.place ? `\nplace ${node.place} in the order` : ""}`);
  return group;
}

function rounded(points) {
  let d = `M${points[0]}`;
  for (let i = 1; i + 1 < points.length; i++) {
    const [a, b, c] = [points[i - 1], points[i], points[i + 1]];
    const towards = (p) => {
      const length = Math.hypot(p[0] - b[0], p[1] - b[1]) || 1;
      const part = Math.min(6, length / 2) / length;
      return [b[0] + (p[0] - b[0]) * part, b[1] + (p[1] - b[1]) * part];
    };
    d += `L${towards(a)}Q${b} ${towards(c)}`;
  }
  return `${d}L${points.at(-1)}`;
}

/** Shows a text beside the pointer while it is over a part of the picture. */
function hint(node, text) {
  node.addEventListener("pointermove", (e) => {
    const tip = document.getElementById("tip");
    tip.textContent = text;
    tip.hidden = false;
    tip.style.left = `${Math.min(e.clientX + 14, innerWidth - tip.offsetWidth - 8)}px`;
    tip.style.top = `${Math.min(e.clientY + 14, innerHeight - tip.offsetHeight - 8)}px`;
  });
  node.addEventListener("pointerleave", () => (document.getElementById("tip").hidden = true));
}

/** Lets one move and zoom a picture; `tell` is told whether only a part of it is in sight. */
function panAndZoom(svg, view, isTime, tell) {
  let box = { x: 0, y: 0, w: view.width, h: view.height };
  const heads = svg.querySelector(".heads");
  const apply = () => {
    svg.setAttribute("viewBox", `${box.x} ${box.y} ${box.w} ${box.h}`);
    const shift = Math.max(0, isTime ? box.x : box.y);
    heads.setAttribute("transform", isTime ? `translate(${shift} 0)` : `translate(0 ${shift})`);
    heads.classList.toggle("moved", shift > 0);
    tell(box.x > 12 || box.y > 12 || box.x + box.w < view.width - 12 || box.y + box.h < view.height - 12);
  };
  const by = (factor, at = { x: box.x + box.w / 2, y: box.y + box.h / 2 }) => {
    const w = Math.min(Math.max(view.width, view.height) * 4, Math.max(40, box.w / factor));
    const scale = w / box.w;
    box = { x: at.x - (at.x - box.x) * scale, y: at.y - (at.y - box.y) * scale, w, h: box.h * scale };
    apply();
  };
  const move = (dx, dy) => {
    box.x += dx * box.w;
    box.y += dy * box.h;
    apply();
  };
  /** Shows the picture from its top left corner on at a scale; what is smaller than the stage is centred. */
  const at = (scale) => {
    const [w, h] = [svg.clientWidth / scale, svg.clientHeight / scale];
    box = { x: w > view.width ? (view.width - w) / 2 : 0, y: 0, w, h };
    apply();
  };
  const whole = () => Math.min(LARGEST_SCALE, svg.clientWidth / view.width, svg.clientHeight / view.height);
  const fit = () => at(whole());
  /** Shows the whole picture if it is readable then, else its beginning. */
  const start = () => {
    const stage = svg.parentElement;
    const width = stage?.clientWidth;
    if (!width) return;
    const below = innerHeight - stage.getBoundingClientRect().top - 100;
    const room = Math.max(below, innerHeight * 0.6);
    const [across, down] = [width / view.width, room / view.height];
    let scale = Math.min(LARGEST_SCALE, across, down);
    if (scale < SMALLEST_SCALE) {
      if (across >= SMALLEST_SCALE) scale = Math.min(1, across);
      else scale = down >= SMALLEST_SCALE ? Math.min(1, down) : 0.85;
    }
    stage.style.height = `${Math.round(Math.min(view.height * scale + 4, room))}px`;
    at(scale);
  };
  /** Moves the picture so that some nodes are seen, clear of the names of the lanes. */
  const reveal = (nodes) => {
    const boxes = nodes.map((node) => view.nodes[node]).filter(Boolean);
    if (!boxes.length) return;
    const name = view.names.length ? view.names[0] : [0, 0];
    const range = (from, size, low, high, head) => {
      if (low - head < from) return Math.max(Math.min(0, from), low - head - 12);
      if (high > from + size) return Math.min(low - head - 12, high - size + 12);
      return from;
    };
    const firstBar = Math.min(...view.nodes.filter(Boolean).map((node) => node[0]));
    box.x = range(box.x, box.w, Math.min(...boxes.map((b) => b[0])), Math.max(...boxes.map((b) => b[0] + b[2])), isTime ? firstBar : 0);
    box.y = range(box.y, box.h, Math.min(...boxes.map((b) => b[1])), Math.max(...boxes.map((b) => b[1] + b[3])), isTime ? 0 : name[1] + 10);
    apply();
  };
  let seen = 0;
  const watcher = new ResizeObserver(() => {
    const width = svg.parentElement?.clientWidth ?? 0;
    // A scroll bar that appears or disappears with the picture's height must not restart the layout.
    if (!width || Math.abs(width - seen) <= 24) return;
    seen = width;
    start();
  });
  queueMicrotask(() => svg.parentElement && watcher.observe(svg.parentElement));
  const point = (e) => {
    const at = new DOMPoint(e.clientX, e.clientY).matrixTransform(svg.getScreenCTM().inverse());
    return { x: at.x, y: at.y };
  };
  let grabbed = null;
  svg.addEventListener("wheel", (e) => {
    e.preventDefault();
    by(e.deltaY < 0 ? 1.15 : 1 / 1.15, point(e));
  }, { passive: false });
  svg.addEventListener("pointerdown", (e) => {
    grabbed = { ...point(e), left: e.clientX, top: e.clientY };
  });
  svg.addEventListener("pointermove", (e) => {
    if (!grabbed) return;
    if (!svg.classList.contains("dragging")) {
      // A click is not a drag, and must reach the element under the pointer.
      if (Math.hypot(e.clientX - grabbed.left, e.clientY - grabbed.top) < 4) return;
      svg.setPointerCapture(e.pointerId);
      svg.classList.add("dragging");
    }
    const at = point(e);
    box.x += grabbed.x - at.x;
    box.y += grabbed.y - at.y;
    apply();
  });
  const release = () => {
    grabbed = null;
    svg.classList.remove("dragging");
  };
  svg.addEventListener("pointerup", release);
  svg.addEventListener("pointercancel", release);
  svg.addEventListener("keydown", (e) => {
    const moves = { ArrowLeft: [-0.1, 0], ArrowRight: [0.1, 0], ArrowUp: [0, -0.1], ArrowDown: [0, 0.1] };
    if (moves[e.key]) {
      e.preventDefault();
      move(...moves[e.key]);
    }
  });
  svg.reveal = reveal;
  return { by, fit };
}

/** Pictures are not blown up beyond the first, nor shrunk below the second until one asks for it. */
const LARGEST_SCALE = 1.35;
const SMALLEST_SCALE = 0.68;

/** Handles the keys that pictures and steps share; returns whether the key was one of them. */
function pictureKey(e) {
  if (e.ctrlKey || e.metaKey || e.altKey || e.target.closest?.("input, textarea, select")) return false;
  const keys = {
    n: () => shown.go?.(shown.step + 1),
    p: () => shown.go?.(shown.step - 1),
    "+": () => shown.zoom?.by(1.25),
    "-": () => shown.zoom?.by(0.8),
    0: () => shown.zoom?.fit(),
  };
  if (!keys[e.key]) return false;
  e.preventDefault();
  keys[e.key]();
  return true;
}
