import { isDeepStrictEqual } from 'node:util'
import { join } from 'node:path'
import { parse as parseToml, type TomlTable } from 'smol-toml'
import { z } from 'zod'
import { ConnectError } from './connect-error.ts'

/** The settings for a tool. */
export interface Connection {
  /** Address of the loopback proxy, without a path. */
  readonly proxy: string
  /** The models to offer or to use, the first one first. */
  readonly models: readonly string[]
}

/** A tool whose settings are in one file. */
export interface Tool {
  /** The file below the user's home. */
  readonly file: (home: string, environment: NodeJS.ProcessEnv) => string
  /**
   * Adds the proxy to the file's content.
   * @throws ConnectError when the file cannot be changed without losing content
   */
  readonly edit: (before: string, connection: Connection) => string
}

const NAME = 'confidential-model-router'

/** Placeholder: tools require a key, and the proxy replaces it with the real one. */
const NO_KEY = 'kept-by-the-proxy'

export const TOOLS: Readonly<Record<string, Tool>> = {
  codex: {
    file: (home, environment) =>
      join(environment['CODEX_HOME'] ?? join(home, '.codex'), 'config.toml'),
    edit: editCodex,
  },
  claude: {
    file: (home, environment) =>
      join(environment['CLAUDE_CONFIG_DIR'] ?? join(home, '.claude'), 'settings.json'),
    edit: (before, { models: [model], proxy }) =>
      editJson(before, (settings) => ({
        ...settings,
        env: {
          ...objectIn(settings, 'env'),
          ANTHROPIC_BASE_URL: proxy,
          ANTHROPIC_AUTH_TOKEN: NO_KEY,
          ...(model === undefined ? {} : { ANTHROPIC_MODEL: model }),
        },
      })),
  },
  opencode: {
    file: (home, environment) =>
      join(environment['XDG_CONFIG_HOME'] ?? join(home, '.config'), 'opencode', 'opencode.json'),
    edit: (before, { models, proxy }) => {
      const [model] = models
      if (model === undefined)
        throw new ConnectError('opencode has to be told its models: give --model')
      return editJson(before, (settings) => ({
        ...settings,
        model: `${NAME}/${model}`,
        provider: {
          ...objectIn(settings, 'provider'),
          [NAME]: {
            npm: '@ai-sdk/openai-compatible',
            name: 'Confidential Model Router',
            options: { baseURL: `${proxy}/v1`, apiKey: NO_KEY },
            models: Object.fromEntries(models.map((one) => [one, { name: one }])),
          },
        },
      }))
    },
  },
}

/** Shell lines that set the usual variables, for other tools. */
export function environmentLines({ proxy, models: [model] }: Connection): string[] {
  const variables = {
    OPENAI_BASE_URL: `${proxy}/v1`,
    OPENAI_API_KEY: NO_KEY,
    ANTHROPIC_BASE_URL: proxy,
    ANTHROPIC_AUTH_TOKEN: NO_KEY,
    ...(model === undefined ? {} : { OPENAI_MODEL: model, ANTHROPIC_MODEL: model }),
  }
  return Object.entries(variables).map(
    ([name, value]) => `export ${name}='${value.replaceAll("'", "'\\''")}'`,
  )
}

const objectSchema = z.record(z.string(), z.json())

function objectIn(settings: z.output<typeof objectSchema>, member: string) {
  const found = objectSchema.safeParse(settings[member] ?? {})
  if (!found.success) throw new ConnectError(`"${member}" is no object in this file`)
  return found.data
}

/** Changes JSON text, keeping its indentation and whether it ends with a newline. */
function editJson(
  before: string,
  change: (settings: z.output<typeof objectSchema>) => z.output<typeof objectSchema>,
): string {
  const settings = objectSchema.safeParse(parseJson(before))
  if (!settings.success)
    throw new ConnectError('the file is no JSON object (comments cannot be kept)')
  const indent = /^([ \t]+)"/m.exec(before)?.[1] ?? '  '
  const end = before === '' || before.endsWith('\n') ? '\n' : ''
  return JSON.stringify(change(settings.data), null, indent) + end
}

function parseJson(text: string): unknown {
  try {
    return text.trim() === '' ? {} : JSON.parse(text)
  } catch {
    return undefined
  }
}

/** Adds lines, which preserves comments, and then parses the result to check that nothing else has changed. */
function editCodex(before: string, { models: [model], proxy }: Connection): string {
  const settings = readToml(before)
  const provider = {
    name: 'Confidential Model Router',
    base_url: `${proxy}/v1`,
    wire_api: 'responses',
  }
  const chosen = { model_provider: NAME, ...(model === undefined ? {} : { model }) }
  const table = Object.entries(provider).map(
    ([name, value]) => `${name} = ${JSON.stringify(value)}`,
  )
  const after = [
    ...Object.entries(chosen).map(([name, value]) => `${name} = ${JSON.stringify(value)}`),
    withoutTopLevel(before, Object.keys(chosen)),
    `[model_providers.${NAME}]`,
    ...table,
    '',
  ].join('\n')
  const providers = settings['model_providers'] ?? {}
  const wanted = {
    ...settings,
    ...chosen,
    model_providers: { ...Object(providers), [NAME]: provider },
  }
  if (isDeepStrictEqual(plain(readToml(after)), plain(wanted))) return after
  throw new ConnectError('the file cannot be changed safely: it has an unusual form')
}

/** The text without the lines that set these members before the first table. */
function withoutTopLevel(text: string, members: readonly string[]): string {
  const lines = text.split('\n')
  const firstTable = lines.findIndex((line) => /^\s*\[/.test(line))
  const top = firstTable < 0 ? lines.length : firstTable
  const sets = (line: string) => members.some((name) => new RegExp(`^\\s*${name}\\s*=`).test(line))
  return lines.filter((line, index) => index >= top || !sets(line)).join('\n')
}

function readToml(text: string): TomlTable {
  try {
    return parseToml(text)
  } catch (cause) {
    throw new ConnectError('the file is no TOML', { cause })
  }
}

function plain(value: unknown): unknown {
  return JSON.parse(JSON.stringify(value))
}
