/** A JSON Schema in tools and response formats; only the members below are used. */
interface Schema {
  readonly type?: unknown
  readonly enum?: unknown
  readonly const?: unknown
  readonly properties?: unknown
  readonly items?: unknown
  readonly anyOf?: unknown
}

const SAMPLES: Readonly<Record<string, unknown>> = {
  string: 'Berlin',
  number: 1,
  integer: 1,
  boolean: true,
  null: null,
}

/** A constant value for a JSON Schema. */
export function sampleValue(schema: unknown): unknown {
  if (!isSchema(schema)) return {}
  if (schema.const !== undefined) return schema.const
  if (Array.isArray(schema.enum)) return schema.enum[0]
  if (Array.isArray(schema.anyOf)) return sampleValue(schema.anyOf[0])
  const type = Array.isArray(schema.type) ? schema.type[0] : schema.type
  if (type === 'array') return [sampleValue(schema.items)]
  if (typeof type === 'string' && type in SAMPLES) return SAMPLES[type]
  const properties = isSchema(schema.properties) ? Object.entries(schema.properties) : []
  return Object.fromEntries(properties.map(([name, member]) => [name, sampleValue(member)]))
}

function isSchema(value: unknown): value is Schema {
  return typeof value === 'object' && value !== null
}
