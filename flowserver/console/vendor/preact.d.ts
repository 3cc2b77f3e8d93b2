export { cloneElement, Component, createContext, createElement, createRef, Fragment, h, isValidElement, render, toChildArray } from "preact";
export type * from "preact";
export * from "preact/hooks";
export { batch, computed, effect, signal, Signal, untracked, useComputed, useSignal, useSignalEffect } from "@preact/signals";
export type { ReadonlySignal } from "@preact/signals";
/** A template: one node, or several as a list. Its type is loose: an element may be passed on wherever a child is. */
export const html: (strings: TemplateStringsArray, ...values: any[]) => any;
