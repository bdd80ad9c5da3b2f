import { z } from 'zod'
import { ApiError } from '../http/errors.ts'
import type { JsonObject } from '../stream/json-object.ts'
import type { ToolIdentity } from '../../protocol/stream-record.ts'
import { CheckedMember } from '../completion/checked-member.ts'
import { requireFewEntries } from '../completion/few-entries.ts'
import { hasText, listOf } from '../completion/list-schema.ts'
import { jsonSchemaObject } from '../completion/schema-members.ts'

/** The tools of a request, as functions. */
export interface ToolSet {
  /** `tools` of the chat request. */
  readonly functions: readonly JsonObject[]
  /** The identity of each tool, by the name sent to the provider. */
  readonly identities: ReadonlyMap<string, ToolIdentity>
  /** Types of dropped hosted tools. */
  readonly dropped: readonly string[]
}

const functionTool = z.object({
  type: z.literal('function'),
  name: z.string().min(1),
  description: z.string().nullish(),
  parameters: jsonSchemaObject.nullish(),
  strict: z.boolean().nullish(),
})

const customTool = z.object({
  type: z.literal('custom'),
  name: z.string().min(1),
  description: z.string().nullish(),
  format: z
    .object({
      type: z.string(),
      syntax: z.string().optional(),
      definition: z.string().optional(),
    })
    .nullish(),
})

const namespaceTool = z.object({
  type: z.literal('namespace'),
  name: z.string().min(1),
  description: z.string().nullish(),
  tools: listOf(hasText('type')),
})

const toolList = new CheckedMember(
  'tools',
  listOf(hasText('type')),
  'a list of tools, each with a type',
)
const functionShape = new CheckedMember('tools', functionTool, 'functions with a name')
const customShape = new CheckedMember('tools', customTool, 'custom tools with a name')
const namespaceShape = new CheckedMember('tools', namespaceTool, 'namespaces with a name and tools')

/** Separates a namespace from a name, in the form that models were trained on. */
const SEPARATOR = '__'

/** The name of a tool in requests to the provider. */
export function flatName(name: string, namespace: string | undefined): string {
  return namespace === undefined ? name : `${namespace}${SEPARATOR}${name}`
}

/**
 * Turns every tool that a model can call into a plain function. Hosted tools are dropped, because clients that offer them
 * also work without.
 * @throws ApiError where there are too many tools, one is malformed, or two have the same name
 */
export function readTools(value: unknown): ToolSet {
  const functions: JsonObject[] = []
  const identities = new Map<string, ToolIdentity>()
  const dropped: string[] = []
  const add = (tool: JsonObject, namespace: string | undefined) => {
    const read = READERS.get(String(tool['type']))
    if (read === undefined) {
      dropped.push(`tools.${String(tool['type'])}`)
      return
    }
    const { identity, description, parameters, strict } = read(tool, namespace)
    const name = flatName(identity.name, namespace)
    if (identities.has(name)) {
      throw new ApiError('invalid_request_error', 'Two tools have the same name.', {
        param: 'tools',
      })
    }
    identities.set(name, identity)
    functions.push({
      type: 'function',
      function: {
        name,
        ...(description && { description }),
        ...(parameters && { parameters }),
        ...(typeof strict === 'boolean' && { strict }),
      },
    })
  }
  for (const [tool, namespace] of offeredTools(value)) add(tool, namespace)
  return { functions, identities, dropped }
}

/** The tools of a request, those of namespaces included, each with its namespace. */
function offeredTools(value: unknown): readonly (readonly [JsonObject, string | undefined])[] {
  requireFewEntries(value, 'tools')
  const offered: (readonly [JsonObject, string | undefined])[] = []
  for (const tool of toolList.optional(value) ?? []) {
    if (tool.type !== 'namespace') offered.push([tool, undefined])
    else {
      const { name, tools } = namespaceShape.read(tool)
      requireFewEntries(tools, 'tools')
      for (const inner of tools) offered.push([inner, name])
    }
    requireFewEntries(offered, 'tools')
  }
  return offered
}

interface ReadTool {
  readonly identity: ToolIdentity
  readonly description: string | null | undefined
  readonly parameters: JsonObject | null | undefined
  readonly strict?: boolean | null | undefined
}

type ToolReader = (tool: unknown, namespace: string | undefined) => ReadTool

const READERS: ReadonlyMap<string, ToolReader> = new Map([
  ['function', readFunction],
  ['custom', readCustom],
])

function readFunction(tool: unknown, namespace: string | undefined): ReadTool {
  const { name, description, parameters, strict } = functionShape.read(tool)
  return { identity: { kind: 'function', name, namespace }, description, parameters, strict }
}

function readCustom(tool: unknown, namespace: string | undefined): ReadTool {
  const { name, description, format } = customShape.read(tool)
  return {
    identity: { kind: 'custom', name, namespace },
    description: [description, grammarNote(format)].filter(Boolean).join('\n\n'),
    parameters: {
      type: 'object',
      properties: { input: { type: 'string', description: 'The whole input of the tool.' } },
      required: ['input'],
      additionalProperties: false,
    },
  }
}

/** A grammar cannot be enforced by a function's schema, so the description tells the model about it. */
function grammarNote(format: z.output<typeof customTool>['format']): string {
  if (format?.definition === undefined) return ''
  return `"input" must match this ${format.syntax ?? ''} grammar:\n${format.definition}`
}

/** The arguments that carry a custom tool's input. */
export function customArguments(input: string): string {
  return JSON.stringify({ input })
}

/** How `tool_choice` and its `allowed_tools` name a tool. */
interface NamedTool {
  readonly type: string
  readonly name?: string | undefined
  readonly namespace?: string | undefined
}

const namedTool = z.looseObject({
  type: z.string(),
  name: z.string().optional(),
  namespace: z.string().optional(),
})

function isNamedTool(value: unknown): value is NamedTool {
  return namedTool.safeParse(value).success
}

const toolChoice = z.union([
  z.enum(['auto', 'none', 'required']),
  z.looseObject({
    type: z.string(),
    name: z.string().optional(),
    namespace: z.string().optional(),
    mode: z.enum(['auto', 'required']).optional(),
    tools: listOf(isNamedTool).optional(),
  }),
])

const choiceShape = new CheckedMember(
  'tool_choice',
  toolChoice,
  'auto, none, required, or an object that names a tool',
)

/** `tools` and `tool_choice` of the chat request, and the dropped parts of the client's choice. */
export interface ChosenTools {
  readonly members: JsonObject
  readonly dropped: readonly string[]
}

/**
 * Reads the tool choice. Providers refuse a choice without functions, so where there are none it is omitted. A required call
 * counts as dropped where there is no function that it may name.
 * @throws ApiError where the choice is malformed, or names or allows a function or custom tool that was not offered
 */
export function chooseTools(value: unknown, tools: ToolSet): ChosenTools {
  const choice = choiceShape.optional(value)
  const members = choice === undefined ? { tools: tools.functions } : chosen(choice, tools)
  const hasFunctions = tools.functions.length > 0
  const wanted = typeof choice === 'object' ? choice.mode : choice
  const isLost = wanted === 'required' && !(hasFunctions && members['tool_choice'] !== 'none')
  return { members: hasFunctions ? members : {}, dropped: isLost ? ['tool_choice'] : [] }
}

function chosen(choice: z.output<typeof toolChoice>, tools: ToolSet): JsonObject {
  const { functions } = tools
  if (typeof choice === 'string') return { tools: functions, tool_choice: choice }
  requireFewEntries(choice.tools, 'tool_choice.tools')
  if (choice.type === 'allowed_tools') {
    const callable = (choice.tools ?? []).filter(({ type }) => READERS.has(type))
    const allowed = new Set(callable.map(wantedName))
    for (const name of allowed) requireOffered(name, tools, 'allows')
    const kept = functions.filter((tool) => allowed.has(nameOf(tool)))
    return kept.length === 0
      ? { tools: functions, tool_choice: 'none' }
      : { tools: kept, tool_choice: choice.mode ?? 'auto' }
  }
  // Hosted tools are dropped, and with them every choice of one.
  if (!READERS.has(choice.type)) return { tools: functions }
  const name = wantedName(choice)
  requireOffered(name, tools, 'names')
  return { tools: functions, tool_choice: { type: 'function', function: { name } } }
}

function wantedName({ name = '', namespace }: NamedTool): string {
  return flatName(name, namespace)
}

/** @throws ApiError where the tool that the choice names or allows was not offered */
function requireOffered(name: string, { identities }: ToolSet, how: 'names' | 'allows'): void {
  if (identities.has(name)) return
  const message = `"tool_choice" ${how} a tool that is not in "tools".`
  throw new ApiError('invalid_request_error', message, { param: 'tool_choice' })
}

function nameOf(tool: JsonObject): string {
  return z.object({ function: z.object({ name: z.string() }) }).parse(tool).function.name
}
