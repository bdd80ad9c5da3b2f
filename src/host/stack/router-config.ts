import { readFileSync } from 'node:fs'
import { fromUtf8 } from '../../protocol/bytes.ts'
import type { RouterConfig } from '../../protocol/config.ts'
import { checkConfig } from '../../protocol/config-rules.ts'
import { StartError } from './start-error.ts'
import type { StandinReady } from './start-standin.ts'

/**
 * The host name that represents the stand-in provider in a configuration: `http://standin.localhost/<name>/v1`, or with
 * https for its attested form, whose `root_key` is then `{"standin": "release root"}`.
 */
const STANDIN_URL = 'http://standin.localhost/'
const STANDIN_TLS_URL = 'https://standin.localhost/'
const STANDIN_ROOT = /\{\s*"standin"\s*:\s*"release root"\s*\}/g

/** The parts of a configuration file that the supervisor needs. */
export interface RouterConfigFile {
  readonly path: string
  /** The file's exact text. */
  readonly text: string
  readonly config: RouterConfig
  /** Whether a provider is the stand-in. */
  readonly usesStandin: boolean
  /** The file's text with the stand-in's real address. */
  textFor(standin: Pick<StandinReady, 'port' | 'tlsPort' | 'rootJwk'>): string
}

/**
 * Reads and checks the configuration, so that errors are reported before anything is started.
 * @throws StartError when the file cannot be read or is invalid; the message names the file, the path inside it and
 *   the reason
 */
export function readRouterConfig(path: string): RouterConfigFile {
  const text = readText(path)
  const check = checkConfig(parseJson(path, text))
  if (!check.ok) {
    const problems = check.problems.map((problem) => `${problem.path}: ${problem.reason}`)
    throw new StartError(`${path}: ${problems.join('; ')}`)
  }
  return {
    path,
    text,
    config: check.config,
    usesStandin: text.includes(STANDIN_URL) || text.includes(STANDIN_TLS_URL),
    textFor: ({ port, tlsPort, rootJwk }) =>
      text
        .replaceAll(STANDIN_URL, `http://127.0.0.1:${port}/`)
        .replaceAll(STANDIN_TLS_URL, `https://127.0.0.1:${tlsPort}/`)
        .replaceAll(STANDIN_ROOT, JSON.stringify(rootJwk)),
  }
}

function readText(path: string): string {
  try {
    return fromUtf8(readFileSync(path))
  } catch (error) {
    const reason = error instanceof TypeError ? 'is not UTF-8' : 'cannot be read'
    throw new StartError(`${path}: ${reason}`, { cause: error })
  }
}

function parseJson(path: string, text: string): unknown {
  try {
    return JSON.parse(text)
  } catch (error) {
    const reason = error instanceof SyntaxError ? error.message : 'not JSON'
    throw new StartError(`${path}: ${reason}`, { cause: error })
  }
}
