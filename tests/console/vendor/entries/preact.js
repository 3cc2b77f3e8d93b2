import { h } from "preact";
import htm from "htm";

export { cloneElement, Component, createContext, createElement, createRef, Fragment, h, isValidElement, render, toChildArray } from "preact";
export * from "preact/hooks";
export { batch, computed, effect, signal, Signal, untracked, useComputed, useSignal, useSignalEffect } from "@preact/signals";
export const html = htm.bind(h);
