/** The list of events with its search and filters. */
import { html, useEffect, useMemo, useState } from "../../vendor/preact.js";
import { Problem } from "../../parts/basics.js";
import { EventList, EventTools } from "../../parts/events.js";
import { setQuery } from "../../routes.js";
import { AllEvents, SomeEvents } from "./event-pages.js";
import { TYPE_GROUPS } from "./event-rows.js";

/**
 * @param {{run: import("./run.js").Run, summary: import("./run.js").Summary | null, step: string, type: string, at: number | null,
 *   isNewestFirst: boolean, onEvent: (id: number, path: string) => void, onSelect: (path: string) => void}} props
 */
export function EventPane({ run, summary, step, type, at, isNewestFirst, onEvent, onSelect }) {
  const [search, setSearch] = useState("");
  const source = useMemo(() => {
    const events = `${run.apiPath}/events`;
    if (!step && !type) return new AllEvents(events, isNewestFirst);
    return new SomeEvents(events, isNewestFirst, { step: step || undefined, type: TYPE_GROUPS[type]?.types ?? (type ? [type] : undefined) });
  }, [run, step, type, isNewestFirst]);
  const total = run.lastEventId.value;
  useEffect(() => source.grow(total), [source, total]);
  const isRead = run.now.value?.complete ?? false;
  useEffect(() => void (isRead && source.askForPaths()), [source, isRead]);
  useEffect(() => {
    const listen = (/** @type {any[]} */ events) => source.add(events);
    run.listeners.add(listen);
    return () => {
      run.listeners.delete(listen);
      source.close();
    };
  }, [source]);
  source.changes.value; // paints again when rows have come
  const steps = useMemo(() => (summary?.steps ?? []).map((each) => each.path), [summary]);
  const loaded = source instanceof AllEvents ? source.rows.size : source.count;
  const count = search
    ? `in ${loaded.toLocaleString()} of ${total.toLocaleString()} events`
    : source instanceof AllEvents ? `${total.toLocaleString()} events` : `${loaded.toLocaleString()}${source.isWhole ? "" : "+"} of ${total.toLocaleString()} events`;
  return html`
    <${EventTools} count=${count} search=${search} onSearch=${setSearch} steps=${steps} step=${step} type=${type} types=${TYPE_GROUPS}
      onFilter=${(/** @type {{step?: string, type?: string}} */ change) => setQuery({ ...("step" in change ? { events: change.step } : {}), ...("type" in change ? { types: change.type } : {}) })}
      isNewestFirst=${isNewestFirst} onOrder=${() => setQuery({ order: isNewestFirst ? null : "desc" })} />
    <${Problem} error=${source.error} />
    <${EventList} key=${`${step} ${type} ${isNewestFirst}`} source=${source} search=${search} selected=${at} startAtEnd=${!isNewestFirst && source instanceof AllEvents}
      onSelect=${(/** @type {any} */ row) => onEvent(row.id, row.path)} onOpen=${(/** @type {any} */ row) => row.path && onSelect(row.path)} />`;
}
