"use strict";
(() => {
  const section = document.getElementById("live");
  const told = document.getElementById("live-told");
  const more = document.getElementById("live-more");
  const table = document.getElementById("live-runs");
  more.addEventListener("click", () => location.reload());

  // A cell's text is never read as HTML: names come from folders.
  const cell = (row, text) => { row.insertCell().textContent = text ?? "–"; };
  const bar = (row, run) => {
    const place = row.insertCell();
    if (run.epoch === null) { place.textContent = "–"; return; }
    if (run.epochs !== null) {
      const shown = document.createElement("progress");
      shown.max = run.epochs;
      shown.value = Math.min(run.epoch, run.epochs);
      shown.setAttribute("aria-label", "Epochs of " + run.name);
      place.append(shown, " ");
    }
    place.append(run.epoch + (run.epochs === null ? "" : " of " + run.epochs));
  };
  const draw = (runs) => {
    const rows = runs.map((run) => {
      const row = document.createElement("tr");
      cell(row, run.name);
      cell(row, run.reason ? run.state + ": " + run.reason : run.state);
      cell(row, run.phase);
      bar(row, run);
      cell(row, run.val === null ? null : (100 * run.val).toFixed(1));
      cell(row, run.seconds === null ? null : run.seconds.toFixed(0));
      return row;
    });
    table.tBodies[0].replaceChildren(...rows);
    table.hidden = rows.length === 0;
    table.parentNode.hidden = table.hidden;
  };
  const say = (text) => { if (told.textContent !== text) told.textContent = text; };
  const count = (runs, state) => runs.filter((run) => run.state === state).length;
  const ask = async () => {
    try {
      const answer = await fetch("progress.json", { cache: "no-store" });
      if (!answer.ok) throw new Error("status " + answer.status);
      const found = await answer.json();
      draw(found.runs);
      const states = ["running", "queued", "stopped", "failed"];
      const parts = states.filter((state) => count(found.runs, state)).map((state) => count(found.runs, state) + " " + state);
      const left = found.left_out ? ", " + found.left_out + " more not shown" : "";
      say(parts.length ? "Runs: " + parts.join(", ") + left + "." : "No run is under way.");
      more.hidden = found.version === section.dataset.version;
    } catch (error) {
      say("fastglt ui does not answer any more; start it again and reload this page.");
      return;
    }
    setTimeout(ask, document.hidden ? 10000 : 2000);
  };
  ask();
})();
