import { html, render } from "./vendor/preact.js";

render(html`<main><h1>flowserver</h1></main>`, document.body);
