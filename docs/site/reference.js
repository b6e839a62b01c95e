// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The button for dark mode in the reference: doxygen-awesome-css has one that needs jQuery, which Doxygen no longer ships.
(() => {
  const key = "hocket-reference-dark";
  const prefers = window.matchMedia("(prefers-color-scheme: dark)");
  const isDark = () => (localStorage.getItem(key) ?? String(prefers.matches)) === "true";
  const show = () => {
    document.documentElement.classList.toggle("dark-mode", isDark());
    document.documentElement.classList.toggle("light-mode", !isDark());
  };
  show();
  prefers.addEventListener("change", show);
  window.addEventListener("DOMContentLoaded", () => {
    const button = document.createElement("button");
    button.id = "dark-mode-button";
    button.type = "button";
    button.title = button.ariaLabel = "Switch between light and dark mode";
    button.textContent = "\u25D0";
    button.addEventListener("click", () => {
      localStorage.setItem(key, String(!isDark()));
      show();
    });
    document.body.append(button);
  });
})();
