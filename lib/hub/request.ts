/** The parts of a request, found and validated by the route table. */
import * as z from "zod/mini";
import { TamqError } from "../base/errors.ts";
import { nearest } from "../model/nearest.ts";
import { type Route, type RouteName, routes } from "./api.ts";

interface Compiled {
  readonly name: RouteName;
  readonly route: Route;
  readonly segments: readonly string[];
}
const COMPILED: readonly Compiled[] = Object.entries(routes).map(([name, route]) => ({
  name: name as RouteName,
  route,
  segments: route.path.split("/"),
}));

/** Throws `unknown_route` or `method_not_allowed`. */
export function findRoute(
  method: string,
  pathname: string,
): { name: RouteName; route: Route; path: Record<string, string> } {
  const given = pathname.split("/");
  const otherMethods: string[] = [];
  for (const { name, route, segments } of COMPILED) {
    const path = match(segments, given);
    if (path === undefined) continue;
    if (route.method === method) return { name, route, path };
    otherMethods.push(route.method);
  }
  if (otherMethods.length > 0) {
    throw new TamqError(
      "INVALID_ARGUMENT",
      "method_not_allowed",
      `this address takes ${[...new Set(otherMethods)].join(" and ")}`,
    );
  }
  const near = nearest(pathname, COMPILED.map(({ route }) => route.path), 1)[0];
  throw new TamqError("NOT_FOUND", "unknown_route", "there is nothing at this address", {
    hint: near === undefined ? "see GET /v1/openapi.json" : `did you mean ${near}?`,
  });
}

function match(
  segments: readonly string[],
  given: readonly string[],
): Record<string, string> | undefined {
  if (segments.length !== given.length) return undefined;
  const path: Record<string, string> = {};
  for (const [i, segment] of segments.entries()) {
    const value = given[i]!;
    if (!segment.startsWith("{")) {
      if (segment !== value) return undefined;
      continue;
    }
    try {
      path[segment.slice(1, -1)] = decodeURIComponent(value);
    } catch {
      return undefined;
    }
  }
  return path;
}

export interface Parts {
  readonly params: unknown;
  readonly query: unknown;
  readonly body: unknown;
}

/** Throws `request_invalid` with the field, or `request_not_json`. */
export function readParts(
  route: Route,
  path: Record<string, string>,
  search: URLSearchParams,
  headers: Headers,
  bytes: Uint8Array,
): Parts {
  const given: Record<string, string> = Object.create(null);
  for (const [key, value] of search) {
    if (key in given) throw invalid("query", `${key} is given twice`);
    given[key] = value;
  }
  const params = check("path", route.params, path);
  const query = check("query", route.query, { ...given });
  if (route.body === undefined) {
    if (bytes.length > 0) throw invalid("body", "this request takes none");
    return { params, query, body: undefined };
  }
  return { params, query, body: check("body", route.body, parseJson(headers, bytes)) };
}

const decoder = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

function parseJson(headers: Headers, bytes: Uint8Array): unknown {
  // A form of a web page cannot send this type without asking first.
  const type = headers.get("content-type") ?? "";
  if (/^application\/json\s*(;|$)/i.test(type)) {
    try {
      return JSON.parse(decoder.decode(bytes));
    } catch {
      // The parser's own words quote the input: they stay out.
    }
  }
  throw new TamqError(
    "INVALID_ARGUMENT",
    "request_not_json",
    "the request's body is not JSON, or is not called application/json",
  );
}

function check(where: string, schema: z.ZodMiniType, value: unknown): unknown {
  const result = z.safeParse(schema as z.ZodMiniType<unknown>, value);
  if (result.success) return result.data;
  const issue = result.error.issues[0]!;
  const at = [where, ...issue.path].join(".");
  if (issue.code === "unrecognized_keys") {
    throw invalid(at, `unknown field "${issue.keys[0]}"`);
  }
  throw invalid(at, issue.message);
}

function invalid(at: string, why: string): TamqError {
  const text = `${at}: ${why}`;
  return new TamqError("INVALID_ARGUMENT", "request_invalid", text.slice(0, 1000));
}

/** The revision; undefined for `*` and where none is needed. Throws `revision_required`. */
export function readIfMatch(route: Route, header: string | null): number | undefined {
  if (route.ifMatch === "none") return undefined;
  if (header === null) {
    if (route.ifMatch === "optional") return undefined;
    throw new TamqError(
      "FAILED_PRECONDITION",
      "revision_required",
      "a change needs the revision that it is meant for",
      { hint: 'send If-Match with the ETag of the record, e.g. If-Match: "3"' },
    );
  }
  if (header.trim() === "*") return undefined;
  const revision = /^\s*(?:W\/)?"(\d{1,15})"\s*$/.exec(header)?.[1];
  if (revision !== undefined) return Number(revision);
  throw invalid("If-Match", 'must be one ETag like "3", or *');
}
