export { graphlib, layout } from "@dagrejs/dagre";
