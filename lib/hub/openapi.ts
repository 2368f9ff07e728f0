/** OpenAPI 3.1, derived from the route table (K-19). */
import * as z from "zod/mini";
import { API_VERSION, type Route, routes } from "./api.ts";
import { COMMON_REASONS, errorBody } from "./errors.ts";

type Json = Record<string, unknown>;

function schemaOf(schema: z.ZodMiniType, io: "input" | "output"): Json {
  const { $schema: _, ...rest } = z.toJSONSchema(schema as never, {
    io,
    unrepresentable: "any",
  }) as Json;
  return rest;
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
    : { "application/json": { schema: schemaOf(route.response, "output") } };
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
        content: { "application/json": { schema: schemaOf(route.body, "input") } },
      },
    }),
    responses,
  };
}

/** The document that `GET /v1/openapi.json` answers. */
export function openApi(version: string): { openapi: string } & Json {
  const paths: Record<string, Json> = {};
  for (const [name, route] of Object.entries(routes)) {
    (paths[route.path] ??= {})[route.method.toLowerCase()] = operation(name, route);
  }
  return {
    openapi: "3.1.0",
    info: {
      title: "State Hub",
      version: API_VERSION,
      description: `Tasks, workplans and messages that tamq ${version} coordinates by.`,
    },
    paths,
    components: {
      schemas: { Error: schemaOf(errorBody, "output") },
      securitySchemes: {
        bearer: { type: "http", scheme: "bearer", description: "Over TCP only." },
      },
    },
    security: [{}, { bearer: [] }],
  };
}
