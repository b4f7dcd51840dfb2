// One job of the server: sent as JSON, answered with server-sent events.
// Send a job and pass on its events; resolves with the content of the last one.
export async function ask(kind, value, laneName, signal, progress) {
  const response = await fetch("ask/" + kind, {
    method: "POST", signal,
    headers: { "Content-Type": "application/json", "X-Lane": laneName },
    body: JSON.stringify(value),
  });
  if (!response.ok) { throw new Error((await response.text()).trim()); }
  const reader = response.body.getReader();
  const decoder = new TextDecoder();
  let text = "";
  for (;;) {
    const { done, value: bytes } = await reader.read();
    if (done) { throw new Error("the server ended before its answer"); }
    text += decoder.decode(bytes, { stream: true });
    let end;
    while ((end = text.indexOf("\n\n")) >= 0) {
      const [head, body] = text.slice(0, end).split("\n");
      text = text.slice(end + 2);
      const name = head.slice(7), content = JSON.parse(body.slice(6));
      if (name === "progress") { if (progress) { progress(content); } continue; }
      if (name === "error") { throw new Error(content.message); }
      return name === "answer" ? content : null;  // null: cancelled by a later question
    }
  }
}

// Make an element: properties (a label under "label"), then what is in it.
export function element(name, { label, ...properties } = {}, ...content) {
  const made = Object.assign(document.createElement(name), properties);
  if (label) { made.setAttribute("aria-label", label); }
  made.append(...content);
  return made;
}
export function button(words, onclick, label) {
  return element("button", { type: "button", onclick, label }, words);
}
