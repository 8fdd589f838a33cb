// The form of a view's options.

import { html } from "./dom.js";
import { sendFile } from "./server.js";

/** @typedef {import("./server.js").OptionField} OptionField */

const LONG_OPTIONS = ["text"];

/** A form whose values outlive the view: an input that was chosen stays chosen for the next view. */
export class OptionForm {
  /**
   * @param {() => void} onsubmit
   */
  constructor(onsubmit) {
    /** @type {Record<string, string>} */
    this.inputs = {};
    /** @type {Record<string, string>} */
    this.values = {};
    /** Values of the next view's options. @type {Record<string, string>} */
    this.restored = {};
    /** @type {OptionField[]} */
    this.fields = [];
    this.control = html("input", { type: "checkbox" });
    this.message = html("p", { class: "error", role: "alert" });
    this.element = html("form", { class: "options" });
    this.element.addEventListener("submit", (event) => {
      event.preventDefault();
      onsubmit();
    });
  }

  /**
   * Show the fields of a view.
   * @param {OptionField[]} fields
   * @param {boolean} hasControl
   */
  show(fields, hasControl) {
    this.fields = fields;
    this.values = this.restored;
    if (fields.length) this.restored = {};
    this.message.textContent = "";
    const inputs = fields.filter((field) => field.is_input).map((field) => this.field(field));
    const others = fields.filter((field) => !field.is_input).map((field) => this.field(field));
    const group = (/** @type {string} */ name, /** @type {HTMLElement[]} */ rows) =>
      rows.length > 0 && html("fieldset", {}, html("legend", {}, name), ...rows);
    this.element.replaceChildren();
    this.control.checked = this.control.checked && hasControl;
    if (!fields.length && !hasControl) return;
    const parts = [inputs.length > 0 && "input", others.length > 0 && "options", hasControl && "control"].filter(Boolean);
    const control = html("label", { class: "control" }, this.control, " the same view of random weights, too (control)");
    this.details = html(
      "details",
      { open: Object.keys(this.chosen()).length > 0 || this.control.checked },
      html("summary", {}, `Choose ${new Intl.ListFormat("en").format(/** @type {string[]} */ (parts))}`),
      html("div", { class: "option-groups" }, group("Input", inputs), group("Options", others), hasControl && control),
      html("div", { class: "option-end" }, html("button", { type: "submit", class: "main" }, "Show"), this.message),
    );
    this.element.append(this.details);
  }

  /**
   * Take values of the inputs and of the next view's options, such as those of an address.
   * @param {Record<string, string>} values
   */
  restore(values) {
    this.inputs = { ...values };
    this.restored = { ...values };
  }

  /** Return whether there are values for the next view. */
  hasRestored() {
    return Object.keys(this.restored).length > 0 || this.control.checked;
  }

  /** Return the values that are not the defaults. */
  chosen() {
    /** @type {Record<string, string>} */
    const chosen = {};
    for (const field of this.fields) {
      const value = (field.is_input ? this.inputs : this.values)[field.name] ?? "";
      if (value !== "" && value !== field.default) chosen[field.name] = value;
    }
    return chosen;
  }

  /**
   * @param {OptionField} field
   * @returns {HTMLElement}
   */
  field(field) {
    const store = field.is_input ? this.inputs : this.values;
    const value = store[field.name] ?? field.default;
    const id = `option-${field.name}`;
    const keep = (/** @type {Event} */ event) => {
      const target = /** @type {HTMLInputElement} */ (event.target);
      store[field.name] = target.type === "checkbox" ? String(target.checked) : target.value;
    };
    const common = { id, name: field.name, "aria-describedby": `${id}-help`, oninput: keep, autocomplete: "off" };
    let control;
    if (field.kind === "choice") {
      control = html("select", common, ...field.choices.map((choice) => html("option", { value: choice, selected: choice === value }, choice)));
    } else if (field.kind === "switch") {
      control = html("input", { ...common, type: "checkbox", checked: value === "true" });
    } else if (LONG_OPTIONS.includes(field.name)) {
      control = html("textarea", { ...common, rows: 2, dir: "auto" }, value);
    } else {
      const type = field.kind === "number" ? "number" : "text";
      const look = { type, step: "any", placeholder: field.default, value: value === field.default ? "" : value };
      control = html("input", { ...common, ...look });
    }
    const label = html("label", { for: id }, field.name.replaceAll("_", " "));
    const help = html("p", { class: "note", id: `${id}-help` }, field.help);
    return html("div", { class: "option" }, label, control, field.takes_file && this.filePicker(field, control), help);
  }

  /**
   * Return a picker whose file becomes the value of an option.
   * @param {OptionField} field
   * @param {HTMLInputElement | HTMLTextAreaElement | HTMLSelectElement} control
   */
  filePicker(field, control) {
    const picker = html("input", { type: "file", "aria-label": `A file of this computer for ${field.name}` });
    picker.addEventListener("change", async () => {
      const file = picker.files?.[0];
      if (!file) return;
      this.message.textContent = "";
      try {
        control.value = await sendFile(file);
        (field.is_input ? this.inputs : this.values)[field.name] = control.value;
      } catch (error) {
        picker.value = "";
        this.message.textContent = error instanceof Error ? error.message : String(error);
      }
    });
    return picker;
  }
}
