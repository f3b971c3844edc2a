// @ts-check
// The editor of an exercise's file, and views in which a reader only reads. The file is on the disk: the reader's own
// editor may change it at any time, and neither of the two writes over the other.

import { load } from "./connection.js";
import { announce, difference, draw, element, t } from "./dom.js";
import { connectGopls } from "./gopls.js";
import { bracketMatching, ChangeSet, classHighlighter, closeBrackets, closeBracketsKeymap, closeSearchPanel, Compartment, defaultKeymap, EditorState,
  EditorView, go, history, historyField, historyKeymap, indentOnInput, indentUnit, indentWithTab, isolateHistory, keymap,
  lineNumbers, lintGutter, nextDiagnostic, openSearchPanel, search, setDiagnostics, syntaxHighlighting, Text, yaml } from "./vendor/codemirror/codemirror.mjs";

/** @typedef {{text: string, version: string}} Disk The file on the disk; without a file, the version is empty. */
/** @typedef {{line: number, column: number, says: string}} Place */
/** @typedef {{name: string, path: string, address: string, places: Place[] | null}} File */
/** @typedef {import("./exercises.js").Task} Task */
/** @typedef {{version: string, changed: boolean, state: any}} Draft */

/** @param {string} path */
function language(path) {
  if (path.endsWith(".go")) return [go(), indentUnit.of("\t")];
  return /\.ya?ml$/.test(path) ? [yaml(), indentUnit.of("  ")] : [];
}

// The words of the search panel.
const phrases = EditorState.phrases.of({ Find: t("Find"), Replace: t("Replace with"), next: t("next"), previous: t("previous"),
  all: t("all"), "match case": t("match case"), regexp: t("regular expression"), "by word": t("whole words"), replace: t("replace"),
  "replace all": t("replace all"), close: t("Close"), "current match": t("current match"), "on line": t("on line"),
  "replaced match on line $": t("replaced on line {1}", "$"), "replaced $ matches": t("replaced {1} times", "$") });
// The browser keeps its other keys of a search.
const searchKeys = keymap.of([{ key: "Mod-f", run: openSearchPanel, scope: "editor search-panel" },
  { key: "Escape", run: closeSearchPanel, scope: "editor search-panel" }]);

/** @param {string} path */
const shared = (path) => [searchKeys, search({ top: true }), phrases, lineNumbers(), bracketMatching(), syntaxHighlighting(classHighlighter), EditorState.tabSize.of(4),
  EditorView.lineWrapping, language(path)];

/**
 * Makes a view of a text that a reader only reads.
 * @param {string} path
 * @param {string} text
 * @returns {EditorView}
 */
export function readOnly(path, text) {
  const attributes = EditorView.contentAttributes.of({ "aria-label": path, "aria-readonly": "true" });
  return new EditorView({ doc: text, extensions: [shared(path), EditorState.readOnly.of(true), attributes] });
}

/**
 * Returns the keys of the editor. Alt and L leads to the loop, as everywhere in the window.
 * @param {Editor} editor
 */
function keys(editor) {
  const leave = (/** @type {EditorView} */ view) => {
    view.setTabFocusMode(60_000); // until another key is pressed
    return false;
  };
  const save = () => {
    editor.save();
    return true;
  };
  const check = () => {
    editor.save(true);
    return true;
  };
  return keymap.of([{ key: "Mod-s", run: save }, { key: "Mod-Enter", run: check }, { key: "F8", run: nextDiagnostic },
    { key: "Escape", run: leave }, indentWithTab, ...closeBracketsKeymap, ...historyKeymap,
    ...defaultKeymap.filter((binding) => binding.key !== "Alt-l")]);
}

/**
 * Returns the heights of the bars above and below the editor that stay in view. A line to which the reader is led, or types,
 * is between them.
 * @param {EditorView} view
 */
function bars(view) {
  const height = (/** @type {string} */ selector) => view.dom.closest(".panel")?.querySelector(selector)?.clientHeight ?? 0;
  return { top: height(".buttons"), bottom: height(".editor > div > .bar") };
}

// Types over a selection. Left to itself, the browser gives such a text the style of the old one, as an inline style, which
// the content security policy refuses.
const typeOver = EditorView.domEventHandlers({ beforeinput: (event, view) => {
  const { main } = view.state.selection;
  const text = event.data;
  if (event.inputType !== "insertText" || text === null || main.empty) return false;
  const insert = () => view.state.update(view.state.replaceSelection(text), { userEvent: "input.type", scrollIntoView: true });
  if (!view.state.facet(EditorView.inputHandler).some((handler) => handler(view, main.from, main.to, text, insert))) {
    view.dispatch(insert());
  }
  return true;
} });

/**
 * Returns the changes that make a text of another one. Where only blanks and line ends differ, as after gofmt, each of them
 * is a change, so that the cursor stays beside its word.
 * @param {Text} before
 * @param {Text} after
 */
function changesOf(before, after) {
  const was = before.toString();
  const is = after.toString();
  const runs = /\s*(\S|$)/g;
  if (was.replace(/\s+/g, "") === is.replace(/\s+/g, "")) {
    const theirs = [...is.matchAll(runs)];
    return ChangeSet.of([...was.matchAll(runs)].flatMap((mine, at) => mine[0] === theirs[at][0] ? []
      : [{ from: mine.index, to: mine.index + mine[0].length - mine[1].length,
        insert: Text.of(theirs[at][0].slice(0, theirs[at][0].length - mine[1].length).split("\n")) }]), was.length);
  }
  let from = 0;
  while (from < Math.min(was.length, is.length) && was[from] === is[from]) from++;
  let same = 0; // at the end
  while (same < Math.min(was.length, is.length) - from && was[was.length - 1 - same] === is[is.length - 1 - same]) same++;
  return ChangeSet.of({ from, to: was.length - same, insert: Text.of(is.slice(from, is.length - same).split("\n")) }, was.length);
}

/** The editor of the files of an exercise, one at a time. */
export class Editor {
  /**
   * @param {HTMLElement} place
   * @param {(check: boolean) => void} onSaved is called when the file on the disk has a new text; check means that the
   *   reader wants a check.
   * @param {() => void} onOpen is called when another file is open, or none
   */
  constructor(place, onSaved, onOpen) {
    this.onSaved = onSaved;
    this.onOpen = onOpen;
    this.id = "";
    this.name = "";
    this.path = "";
    /** @type {Task | undefined} */
    this.task = undefined;
    this.led = ""; // the time of the last verdict that led to a file
    this.names = /** @type {HTMLSelectElement} */ (element("select", {
      change: () => this.task && this.open(this.task, this.names.value) }));
    this.choice = element("label", { hidden: true }, t("The file:"), " ", this.names);
    this.place = element("div");
    place.append(this.choice, this.place);
    /** @type {EditorView | undefined} */
    this.view = undefined;
    // The version and the text that the editor and the disk had in common. Without a text, they had none.
    this.version = "";
    /** @type {Text | undefined} */
    this.base = undefined;
    /** @type {ChangeSet | undefined} the changes since the base */
    this.since = undefined;
    /** @type {ChangeSet | undefined} the changes since the beginning of a save */
    this.sinceSave = undefined;
    this.help = new Compartment(); // of gopls
    /** @type {(() => void) | undefined} ends the connection to gopls */
    this.leaveGopls = undefined;
    this.opening = Promise.resolve();
    this.queue = Promise.resolve();
    this.waiting = 0;
    /** @type {Disk | undefined} the file about which the question is */
    this.asked = undefined;
    this.commanded = false; // a command of the window may write the file
    this.later = 0;
    this.status = element("p", { class: "note", role: "status" });
    this.question = element("section", { class: "question", hidden: true });
    setInterval(() => this.look(), 1000);
    addEventListener("pagehide", () => this.keep());
  }

  /** @returns {boolean} whether the text differs from the disk */
  get changed() {
    return !this.view || !this.base?.eq(this.view.state.doc);
  }

  /**
   * Shows a file of a begun exercise: the chosen one, or after a new verdict the one of which it speaks.
   * @param {Task} task
   * @param {string} [chosen] the name of the file
   */
  async open(task, chosen) {
    this.task = task;
    const files = task.begun ? task.files ?? [] : [];
    const here = this.id === task.id ? files.find((one) => one.name === this.name) : undefined;
    const verdict = `${task.id} ${task.card?.time}`;
    const isNew = this.led !== verdict && !here?.places?.length;
    this.led = verdict;
    const file = files.find((one) => one.name === chosen) ?? (isNew ? files.find((one) => one.places?.length) : undefined) ??
      here ?? files[0];
    if (!file || file !== here) {
      const isInside = this.view?.hasFocus;
      this.close();
      if (!file) return this.onOpen();
      this.id = task.id;
      this.name = file.name;
      this.path = file.path;
      this.opening = this.load().then(() => isInside ? this.focus() : undefined);
    }
    this.list(files);
    this.onOpen();
    await this.opening;
    if (this.id !== task.id || this.name !== file.name) return; // another file was opened meanwhile
    this.mark(file.places);
    this.askGopls(file.address);
  }

  /**
   * Lists the files of the exercise, when there is a choice.
   * @param {File[]} files
   */
  list(files) {
    this.choice.hidden = files.length < 2;
    this.names.replaceChildren(...files.map(({ name }) => element("option", { value: name, selected: name === this.name },
      name !== this.name && this.kept(name)?.changed ? `${name}: ${t("Not saved yet.")}` : name)));
  }

  async load() {
    const address = this.address();
    const answer = await load(address);
    if (address !== this.address()) return; // another file was opened meanwhile
    if (answer.ok) return this.show(await answer.json());
    this.place.replaceChildren(element("p", { role: "alert" }, await answer.text()));
    this.id = "";
  }

  /**
   * Lets Go's language server help, where it runs.
   * @param {string} address the file for gopls, empty without gopls
   */
  askGopls(address) {
    const view = this.view;
    if (!view || !address || this.leaveGopls) return;
    this.leaveGopls = connectGopls(this.id, address, (help) => view.dispatch({ effects: this.help.reconfigure(help) }),
      () => this.leaveGopls = undefined);
  }

  close() {
    this.keep();
    this.leaveGopls?.();
    this.leaveGopls = undefined;
    this.view?.destroy();
    this.view = undefined;
    this.id = "";
    this.answered();
    this.choice.hidden = true;
    this.place.replaceChildren();
  }

  /**
   * @param {string} [more]
   * @param {Record<string, string>} [query]
   */
  address(more = "", query = {}) {
    return `/exercises/${encodeURIComponent(this.id)}/file${more}?${new URLSearchParams({ name: this.name, ...query })}`;
  }

  /** @param {Disk} disk */
  show(disk) {
    const windows = /\r\n/.test(disk.text) && !/(^|[^\r])\n/.test(disk.text);
    const extensions = [shared(this.path), keys(this), history(), closeBrackets(), typeOver, indentOnInput(), lintGutter(),
      this.help.of([]), EditorView.scrollMargins.of(bars), windows ? EditorState.lineSeparator.of("\r\n") : [],
      EditorView.contentAttributes.of({ "aria-label": this.path, "aria-describedby": "editor-keys" }),
      EditorView.updateListener.of((update) => update.docChanged && this.follow(update.changes))];
    const { draft, state } = this.draft(extensions) ??
      { draft: undefined, state: EditorState.create({ doc: disk.text, extensions }) };
    this.view = new EditorView({ state });
    this.version = draft ? draft.version : disk.version;
    this.since = ChangeSet.empty(state.doc.length);
    this.base = state.doc;
    if (draft?.changed) {
      this.base = draft.version === disk.version ? state.toText(disk.text) : undefined;
      this.since = undefined;
    }
    const button = element("button", { type: "button", click: () => this.save() }, t("Save"));
    this.place.replaceChildren(this.view.dom, this.question, element("p", { class: "bar" }, button, this.status),
      element("p", { class: "note", id: "editor-keys" },
        t("Ctrl S or ⌘ S saves, Ctrl Enter or ⌘ Enter saves and checks, F8 goes to the next error. Escape and then Tab leaves the editor.")));
    this.say(this.changed ? t("Not saved yet.") : "");
    this.take(disk);
  }

  focus() {
    this.view?.focus();
  }

  /** @param {string} sentence */
  say(sentence) {
    this.status.textContent = sentence;
  }

  /** @param {ChangeSet} changes */
  follow(changes) {
    this.since = this.since?.compose(changes);
    this.sinceSave = this.sinceSave?.compose(changes);
    this.say(this.changed ? t("Not saved yet.") : "");
    clearTimeout(this.later);
    this.later = setTimeout(() => this.keep(), 300);
  }

  // The text and its history survive a reload.

  /**
   * Returns what was kept of a file of the exercise.
   * @param {string} name
   * @returns {Draft | undefined}
   */
  kept(name) {
    return JSON.parse(localStorage.getItem(`editor ${this.id} ${name}`) ?? "null") ?? undefined;
  }

  /**
   * Returns the text that was there before a reload.
   * @param {import("./vendor/codemirror/codemirror.mjs").Extension} extensions
   */
  draft(extensions) {
    const draft = this.kept(this.name);
    try {
      return draft && { draft, state: EditorState.fromJSON(draft.state, { extensions }, { history: historyField }) };
    } catch { // it is of another version of the editor
      return undefined;
    }
  }

  keep() {
    if (!this.view) return;
    const draft = { version: this.version, changed: this.changed, state: this.view.state.toJSON({ history: historyField }) };
    try {
      localStorage.setItem(`editor ${this.id} ${this.name}`, JSON.stringify(draft));
    } catch { // the storage is full: an old draft would be wrong
      localStorage.removeItem(`editor ${this.id} ${this.name}`);
    }
  }

  // Requests run one after the other, so that an answer is about the present version.

  /** @param {() => Promise<void>} request */
  after(request) {
    this.waiting++;
    this.queue = this.queue.then(request).finally(() => this.waiting--);
    return this.queue;
  }

  /** Takes the text that a command of the window has written, after the command has ended. */
  async commandEnded() {
    await this.queue;
    await this.look();
    this.commanded = false;
  }

  /** Looks whether another program has changed the file. */
  look() {
    if (!this.view || this.waiting > 0 || document.visibilityState === "hidden") return undefined;
    const view = this.view;
    return this.after(async () => {
      const answer = await load(this.address("", { version: this.asked?.version || this.version }));
      if (view !== this.view || answer.status === 204 || answer.status === 503) return;
      if (answer.ok) await this.take(await answer.json());
      else this.say(t("The file cannot be read. Your text is still here. {1}", (await answer.text()).trim()));
    });
  }

  /**
   * Compares the file on the disk with the text.
   * @param {Disk} disk
   * @param {boolean} [saving]
   */
  async take(disk, saving = false) {
    const view = this.view;
    if (disk.version === this.version) this.answered();
    if (!view || disk.version === this.version) return;
    const text = view.state.toText(disk.text);
    if (disk.version && text.eq(view.state.doc)) return this.settle(disk.version);
    if (!disk.version) {
      this.version = "";
      this.base = undefined;
      this.say(t("The file was deleted or renamed. Your text is still here, and Save writes it again."));
    } else if (!this.changed && !saving && disk.text.trim() === "") {
      this.say(t("The file on the disk is empty, or only half saved. Your text is still here."));
    } else if (this.changed || saving) {
      await this.ask();
      if (!saving) return;
      this.say(t("Not saved: the question waits for your answer."));
      announce(this.status.textContent ?? "");
      this.question.scrollIntoView({ block: "nearest" });
    } else {
      this.replace(disk);
      this.onSaved(false);
    }
  }

  /**
   * Puts the file's text into the editor, as a change that Undo takes back.
   * @param {Disk} disk
   */
  replace(disk) {
    const view = this.view;
    if (!view) return;
    view.dispatch({ changes: changesOf(view.state.doc, view.state.toText(disk.text)), annotations: isolateHistory.of("full") });
    this.settle(disk.version);
    this.say(this.commanded ? t("The command has written the file. You see its text; Undo brings back yours.")
      : t("Another program has changed the file. You see its text; Undo brings back yours."));
    announce(this.status.textContent ?? "");
  }

  /**
   * The editor and the disk have a text in common.
   * @param {string} version
   * @param {Text | undefined} [base]
   * @param {ChangeSet} [since]
   */
  settle(version, base = this.view?.state.doc, since = base && ChangeSet.empty(base.length)) {
    this.version = version;
    this.base = base;
    this.since = since;
    this.answered();
    this.keep();
  }

  answered() {
    this.asked = undefined;
    this.question.hidden = true;
  }

  /** Asks which text stays, when both have changed. */
  async ask() {
    const view = this.view;
    const body = view?.state.sliceDoc() ?? "";
    const answer = await load(this.address("/difference"), { method: "POST", body });
    if (view !== this.view) return;
    if (!answer.ok) return this.say(t("The file cannot be read. Your text is still here. {1}", (await answer.text()).trim()));
    /** @type {Disk & {difference: string}} */
    const disk = await answer.json();
    this.asked = disk;
    const mine = element("button", { type: "button", click: () => this.save(false, this.asked?.version) }, t("Keep my text"));
    const other = element("button", { type: "button", click: () => this.asked && this.replace(this.asked) }, t("Use the file's text"));
    draw(this.question,
      element("p", { role: "alert" }, t("Your text is not saved, and another program has changed the file. Which text stays?")),
      difference(disk.difference), element("p", { class: "bar" }, mine, other));
    this.question.hidden = false;
  }

  /**
   * Saves the text when the file on the disk is the one that the reader knows.
   * @param {boolean} [check]
   * @param {string} [over] a version of the file that the reader has seen and does not want
   */
  save(check = false, over = undefined) {
    return this.after(async () => {
      const view = this.view;
      if (!view) return;
      const doc = view.state.doc;
      this.sinceSave = ChangeSet.empty(doc.length);
      const answer = await load(this.address("", { version: over ?? this.version }), { method: "PUT", body: view.state.sliceDoc() });
      if (!answer.ok) return this.say(t("The file was not saved. Your text is still here. {1}", (await answer.text()).trim()));
      /** @type {Disk & {saved: boolean}} */
      const disk = await answer.json();
      if (view !== this.view) return this.onSaved(check); // another file was opened meanwhile
      if (!disk.saved) return this.take(disk, true);
      const saved = view.state.toText(disk.text);
      const format = changesOf(doc, saved);
      const later = this.sinceSave; // the reader may have changed the text meanwhile
      if (!format.empty) view.dispatch({ changes: format.map(later, true), annotations: isolateHistory.of("full") });
      this.settle(disk.version, saved, later.map(format));
      this.say(this.changed ? t("Not saved yet.") : t("Saved."));
      announce(t("Saved."));
      this.onSaved(check);
    });
  }

  /**
   * Marks the places of the last check. They move with the text that the reader has changed since.
   * @param {Place[] | null} places
   */
  mark(places) {
    const { view } = this;
    if (!view || !this.base || !this.since) return;
    view.dispatch(setDiagnostics(view.state, (places ?? []).flatMap((place) => {
      const range = this.rangeOf(place);
      return range ? [{ ...range, severity: /** @type {"error" | "warning"} */ (place.says ? "error" : "warning"),
        message: place.says || t("The last check fails here. The hint explains it.") }] : [];
    })));
  }

  /**
   * Returns the present range of a place of the last check.
   * @param {Place} place
   */
  rangeOf(place) {
    const { base, since } = this;
    if (!base || !since || place.line > base.lines) return undefined;
    const line = base.line(place.line);
    const begin = Math.max(place.column - 1, line.text.search(/\S|$/)); // without a column, the whole line is meant
    const from = since.mapPos(Math.min(line.from + begin, line.to), 1);
    return { from, to: Math.max(from, since.mapPos(line.to, -1)) };
  }

  /**
   * Puts the cursor on a place of the last check.
   * @param {File} file
   * @param {Place} place
   */
  async goTo(file, place) {
    if (this.task && this.name !== file.name) await this.open(this.task, file.name);
    const range = this.rangeOf(place);
    if (!range) return;
    this.view?.dispatch({ selection: { anchor: range.from }, effects: EditorView.scrollIntoView(range.from, { y: "center" }) });
    this.focus();
  }
}
