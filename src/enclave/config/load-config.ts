import { readFile } from 'node:fs/promises'
import { fromUtf8 } from '../../protocol/bytes.ts'
import type { RouterConfig } from '../../protocol/config.ts'
import { checkConfig } from '../../protocol/config-rules.ts'
import type { ConfigProblem } from '../../protocol/config-problem.ts'
import { MalformedEvidence } from '../../protocol/malformed-evidence.ts'
import { sha256Hex } from '../../protocol/digest.ts'
import { parseStrictJson } from '../../protocol/strict-json.ts'
import { findStartProblems, type StartupEnv } from './start-rules.ts'

/** A valid configuration with the secrets it names. */
export interface LoadedConfig {
  readonly config: RouterConfig
  /** The exact text of the file. */
  readonly text: string
  /** SHA-256 of the text's UTF-8 bytes, lowercase hex: identifies the configuration in evidence and receipts. */
  readonly sha256: string
  /** Provider name to API key, for providers that have one. */
  readonly providerApiKeys: Readonly<Record<string, string>>
  /** Signing secrets by webhook endpoint. */
  readonly webhookSecrets: Readonly<Record<string, string>>
  /** Null: the router is sealed. */
  readonly adminToken: string | null
}

/** The configuration is invalid. The message lists every problem for the operator. */
export class ConfigRefused extends Error {
  readonly problems: readonly ConfigProblem[]

  constructor(file: string, problems: readonly ConfigProblem[]) {
    const lines = problems.map(({ path, reason }) => `\n  ${path}: ${reason}`)
    super(`the configuration ${file} cannot be used:${lines.join('')}`)
    this.name = 'ConfigRefused'
    this.problems = problems
  }
}

/**
 * Reads and checks the configuration file.
 * @throws ConfigRefused when the file cannot be read or the configuration is invalid
 */
export async function loadConfig(file: string, startup: StartupEnv): Promise<LoadedConfig> {
  return parseConfig(file, await readText(file), startup)
}

/**
 * Checks a configuration text; `file` is its path.
 * @throws ConfigRefused when the configuration is invalid
 */
export async function parseConfig(
  file: string,
  text: string,
  startup: StartupEnv,
): Promise<LoadedConfig> {
  const check = checkConfig(parseJson(file, text))
  if (!check.ok) throw new ConfigRefused(file, check.problems)
  const problems = findStartProblems(check.config, startup)
  if (problems.length > 0) throw new ConfigRefused(file, problems)
  return {
    config: check.config,
    text,
    sha256: await sha256Hex(text),
    providerApiKeys: readApiKeys(check.config, startup.env),
    webhookSecrets: readWebhookSecrets(check.config, startup.env),
    adminToken: startup.adminToken,
  }
}

const WHOLE_FILE = '(the whole file)'

async function readText(file: string): Promise<string> {
  try {
    return fromUtf8(await readFile(file))
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? String(error.code) : 'unknown error'
    const reason = error instanceof TypeError ? 'is not UTF-8' : `cannot be read (${code})`
    throw new ConfigRefused(file, [{ path: WHOLE_FILE, reason }])
  }
}

/** A repeated member is refused: a human reader and the program could disagree on its value. */
function parseJson(file: string, text: string): unknown {
  try {
    return parseStrictJson(text, 'configuration')
  } catch (error) {
    if (!(error instanceof MalformedEvidence)) throw error
    throw new ConfigRefused(file, [{ path: WHOLE_FILE, reason: error.reason }])
  }
}

function readApiKeys(config: RouterConfig, env: StartupEnv['env']): Record<string, string> {
  const found = Object.entries(config.providers).flatMap(([name, { api_key_env: variable }]) => {
    const key = variable === undefined ? undefined : env[variable]
    return key ? [[name, key] as const] : []
  })
  return Object.fromEntries(found)
}

function readWebhookSecrets(
  { service }: RouterConfig,
  env: StartupEnv['env'],
): Record<string, string> {
  const endpoints = Object.entries(service.webhooks?.endpoints ?? {})
  return Object.fromEntries(
    endpoints.flatMap(([name, { secret_env: variable }]) => {
      const secret = env[variable]
      return secret ? [[name, secret] as const] : []
    }),
  )
}
