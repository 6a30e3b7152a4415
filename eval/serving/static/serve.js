// Says how many runs are ticked, and lets them be compared from two on. Without it the form works as well.
"use strict";
const button = document.getElementById("compare");
if (button) {
  const boxes = [...document.querySelectorAll("input[name=run]")];
  const tell = () => {
    const ticked = boxes.filter((box) => box.checked).length;
    button.disabled = ticked < 2;
    if (ticked) document.getElementById("ticked").textContent = `${ticked} ticked; the oldest is the baseline.`;
  };
  for (const box of boxes) box.addEventListener("change", tell);
  tell();
}
