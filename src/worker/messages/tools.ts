import { z } from 'zod'
import { CheckedMember } from '../completion/checked-member.ts'
import { requireFewEntries } from '../completion/few-entries.ts'
import { jsonSchemaObject } from '../completion/schema-members.ts'
import { ApiError } from '../http/errors.ts'
import type { JsonObject } from '../stream/json-object.ts'

/** The tools of a request as functions, and what was dropped: tools, by type, and a choice that needs a dropped tool. */
export interface ReadTools {
  /** `tools`, `tool_choice` and `parallel_tool_calls` of the chat request. */
  readonly members: JsonObject
  readonly dropped: readonly string[]
}

/** The names of the tools of a request. */
interface ToolNames {
  readonly functions: ReadonlySet<string>
  /** Names of the dropped tools. */
  readonly vendor: ReadonlySet<string>
}

const TOOLS = 'a list of tools with names and an input_schema'

const toolList = new CheckedMember('tools', z.array(z.unknown()), TOOLS)
const toolShape = new CheckedMember(
  'tools',
  z.looseObject({
    type: z.string().nullish(),
    name: z.string().optional(),
    description: z.string().nullish(),
    input_schema: jsonSchemaObject.nullish(),
    strict: z.boolean().nullish(),
  }),
  TOOLS,
)

const choice = new CheckedMember(
  'tool_choice',
  z.looseObject({
    type: z.enum(['auto', 'any', 'tool', 'none']),
    name: z.string().optional(),
    disable_parallel_tool_use: z.boolean().nullish(),
  }),
  'an object of type auto, any, tool or none',
)

const CHOICES = { auto: 'auto', any: 'required', none: 'none' } as const

/** @throws ApiError where there are too many tools, or a tool or the choice is malformed */
export function readTools(tools: unknown, toolChoice: unknown): ReadTools {
  requireFewEntries(tools, 'tools')
  const functions: ToolFunction[] = []
  const dropped: string[] = []
  const vendor = new Set<string>()
  for (const offered of toolList.optional(tools) ?? []) {
    const tool = toolShape.read(offered)
    const { type, name } = tool
    if (type === undefined || type === null || type === 'custom') functions.push(functionOf(tool))
    else {
      dropped.push(`tools.${type}`)
      if (name !== undefined) vendor.add(name)
    }
  }
  const names = { functions: new Set(functions.map((tool) => tool.function.name)), vendor }
  const chosen = choose(toolChoice, names)
  return {
    // Providers refuse a tool choice without functions.
    members: functions.length === 0 ? {} : { tools: functions, ...chosen.members },
    dropped: [...dropped, ...chosen.dropped],
  }
}

interface ToolFunction {
  readonly type: 'function'
  readonly function: { readonly name: string }
}

function functionOf({
  name,
  description,
  input_schema,
  strict,
}: ReturnType<typeof toolShape.read>): ToolFunction {
  if (name === undefined) throw invalid('"tools": a tool has no name.', 'tools')
  const described = { ...(description && { description }), parameters: input_schema ?? {} }
  return {
    type: 'function',
    function: { name, ...described, ...(typeof strict === 'boolean' && { strict }) },
  }
}

function choose(value: unknown, { functions, vendor }: ToolNames): ReadTools {
  const wanted = choice.optional(value)
  if (wanted === undefined) return { members: {}, dropped: [] }
  const { type, name, disable_parallel_tool_use } = wanted
  const parallel = disable_parallel_tool_use === true ? { parallel_tool_calls: false } : {}
  if (type !== 'tool') {
    const isLost = type === 'any' && functions.size === 0
    const members = { tool_choice: CHOICES[type], ...parallel }
    return { members, dropped: isLost ? ['tool_choice'] : [] }
  }
  if (name !== undefined && functions.has(name)) {
    const members = { tool_choice: { type: 'function', function: { name } }, ...parallel }
    return { members, dropped: [] }
  }
  if (name !== undefined && vendor.has(name)) return { members: parallel, dropped: ['tool_choice'] }
  throw invalid('"tool_choice" names a tool that is not in "tools".', 'tool_choice')
}

function invalid(message: string, param: string): ApiError {
  return new ApiError('invalid_request_error', message, { param })
}
