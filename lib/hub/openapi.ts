/** OpenAPI 3.1, derived from the route table (K-19). */
import * as z from "zod/mini";
import { API_VERSION, type Route, routes } from "./api.ts";
import { COMMON_REASONS, errorBody } from "./errors.ts";
import * as records from "./schema.ts";

type Json = Record<string, unknown>;

function schemaOf(schema: z.ZodMiniType, io: "input" | "output"): Json {
  const { $schema: _, ...rest } = z.toJSONSchema(schema as never, {
    io,
    unrepresentable: "any",
  }) as Json;
  return rest;
}

/** Records that several routes answer, described once. */
const RECORDS: Readonly<Record<string, Json>> = Object.fromEntries(
  Object.entries({
    Workplan: records.workplan,
    Task: records.task,
    Message: records.message,
    Checkpoint: records.checkpoint,
    Receipt: records.receipt,
  }).map(([name, schema]) => [name, schemaOf(schema, "output")]),
);
const REFERENCES = new Map(
  Object.entries(RECORDS).map(([name, schema]) => [
    JSON.stringify(schema),
    { $ref: `#/components/schemas/${name}` },
  ]),
);

/** The same schema with every record in it replaced by its reference. */
function refer(schema: unknown): unknown {
  if (typeof schema !== "object" || schema === null) return schema;
  const reference = REFERENCES.get(JSON.stringify(schema));
  if (reference !== undefined) return reference;
  if (Array.isArray(schema)) return schema.map(refer);
  return Object.fromEntries(Object.entries(schema).map(([key, value]) => [key, refer(value)]));
}

function parameters(route: Route): Json[] {
  const list: Json[] = [];
  for (const place of ["path", "query"] as const) {
    const shape = place === "path" ? route.params : route.query;
    const { properties = {}, required = [] } = schemaOf(shape, "output") as {
      properties?: Record<string, Json>;
      required?: string[];
    };
    for (const [name, schema] of Object.entries(properties)) {
      list.push({ name, in: place, required: required.includes(name), schema });
    }
  }
  if (route.ifMatch !== "none") {
    list.push({
      name: "If-Match",
      in: "header",
      required: route.ifMatch === "required",
      description: 'The revision that the change is meant for, as its ETag; "*" for any.',
      schema: { type: "string" },
    });
  }
  if (route.answers === "etag") {
    list.push({
      name: "If-None-Match",
      in: "header",
      required: false,
      description: "Answers 304 when this is still the ETag.",
      schema: { type: "string" },
    });
  }
  if (route.answers === "events") {
    list.push({
      name: "Last-Event-ID",
      in: "header",
      required: false,
      description: "The cursor to continue after; wins over the query.",
      schema: { type: "string" },
    });
  }
  return list;
}

function operation(name: string, route: Route): Json {
  const answer = route.answers === "events"
    ? { "text/event-stream": { schema: { type: "string" } } }
    : { "application/json": { schema: refer(schemaOf(route.response, "output")) } };
  const responses: Json = {
    [route.status]: { description: route.summary, content: answer },
    default: {
      description: `A failure. Reasons: ${[...route.reasons, ...COMMON_REASONS].join(", ")}.`,
      content: { "application/json": { schema: { $ref: "#/components/schemas/Error" } } },
    },
  };
  if (route.answers === "etag") responses["304"] = { description: "Not changed." };
  return {
    operationId: name,
    tags: [route.tag],
    summary: route.summary,
    parameters: parameters(route),
    ...(route.body === undefined ? {} : {
      requestBody: {
        required: true,
        content: { "application/json": { schema: refer(schemaOf(route.body, "input")) } },
      },
    }),
    responses,
  };
}

/** The document that `GET /v1/openapi.json` answers. */
export function openApi(): { openapi: string } & Json {
  const paths: Record<string, Json> = {};
  for (const [name, route] of Object.entries(routes)) {
    (paths[route.path] ??= {})[route.method.toLowerCase()] = operation(name, route);
  }
  return {
    openapi: "3.1.0",
    info: {
      title: "State Hub",
      version: API_VERSION,
      description: "Tasks, workplans and messages that tamq coordinates by.",
    },
    paths,
    components: {
      schemas: { ...RECORDS, Error: schemaOf(errorBody, "output") },
      securitySchemes: {
        bearer: { type: "http", scheme: "bearer", description: "Over TCP only." },
      },
    },
    security: [{}, { bearer: [] }],
  };
}
