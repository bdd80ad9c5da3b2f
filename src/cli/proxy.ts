import { once } from 'node:events'
import { Command, InvalidArgumentError } from 'commander'
import { ClientError } from '../client/errors.ts'
import { createClient, type Proof } from '../client/index.ts'
import { defaultStatePath, fileState } from '../client/node/bundle-state.ts'
import { createProxy, type ProxiedRequest } from '../client/node/proxy.ts'
import { isBearerToken } from '../protocol/bearer-token.ts'
import { MalformedEvidence } from '../protocol/malformed-evidence.ts'
import { asciiOnly } from '../protocol/terminal-text.ts'
import { ON_SIMULATED } from '../verify/headline.ts'
import { endingExplainer, printError } from './failure.ts'
import type { Subcommand } from './subcommand.ts'
import { InputError } from './verify/input-error.ts'
import { readJson, readText } from './verify/read-input.ts'

interface ProxyOptions {
  readonly router: string
  readonly rootKey: string
  readonly port: number
  readonly apiKeyFile?: string
  readonly environment?: string
  readonly allowSimulated?: boolean
  readonly requireCrl?: boolean
  readonly logPolicy?: string
  readonly state: string
}

const HOST = '127.0.0.1'

const NETWORK_PROXY = `
The router is reached through the proxy that HTTPS_PROXY and NO_PROXY name, if there is one. It sees the router's name and port,
and how much is sent when, but no prompt, answer or API key: what is proven is the other end of the TLS connection inside.
The user name and password of an http:// proxy go to it in the clear; give an https:// one where others are on the way.`

const PORT_TAKEN = 'the port is in use: give another one with --port'

const explainOther = endingExplainer({
  told: [ClientError, InputError, MalformedEvidence],
  print: (message) => printError(withFlags(message)),
})

/** Options of the client library, mapped to the flags of this command. */
const FLAGS: Readonly<Record<string, string>> = {
  baseURL: '--router',
  rootKey: '--root-key',
  'policy.logPolicy': '--log-policy',
}

/**
 * `proxy`: a verified connection to a router for every program on this machine. SIGINT and SIGTERM end it with status
 * 0.
 */
export function proxySubcommand(): Subcommand {
  const command = new Command('proxy')
    .description(
      'Serves on loopback what a router serves, and sends nothing to it before it is proven. /verification shows the proof.',
    )
    .requiredOption('--router <url>', 'the router, https')
    .requiredOption('--root-key <file>', "the release root's public JWK")
    .option('--port <port>', 'where to listen, on 127.0.0.1; 0 for any free port', parsePort, 8790)
    .option('--api-key-file <file>', 'the key to send, so that tools need none (or CMR_API_KEY)')
    .option('--environment <name>', 'the environment it must be for (default: production)')
    .option('--require-crl', "refuse evidence without AMD's revocation list")
    .option('--log-policy <file>', 'the public log of releases that must have bundle and manifest')
    .option('--allow-simulated', 'accept a simulated platform, which proves nothing')
    .option('--state <file|none>', 'remembers the last good bundle', defaultStatePath(process.env))
    .addHelpText('after', NETWORK_PROXY)
    .action(async (options: ProxyOptions) => {
      await serve(options)
      process.exit(0)
    })
  return { command, explain }
}

async function serve(options: ProxyOptions): Promise<void> {
  const {
    allowSimulated = false,
    environment,
    logPolicy,
    port,
    requireCrl = false,
    router,
  } = options
  const client = createClient({
    baseURL: router,
    rootKey: await readJson(options.rootKey),
    policy: {
      allowSimulated,
      requireCrl,
      ...(logPolicy === undefined ? {} : { logPolicy: await readJson(logPolicy) }),
    },
    state: fileState(options.state),
    ...(environment === undefined ? {} : { environment }),
  })
  const proxy = createProxy({
    client,
    router: new URL(router.replace(/\/(v1\/?)?$/, '')),
    apiKey: await readApiKey(options.apiKeyFile),
    now: () => Date.now(),
    onAnswered: (request) => console.log(lineOf(request)),
  })
  const { server } = proxy
  server.listen(port, HOST)
  await once(server, 'listening')
  const address = server.address()
  const url = `http://${HOST}:${typeof address === 'object' ? address?.port : port}`
  console.log(`  proxy    ${url}  (base URL for tools: ${url}/v1)`)
  console.log(`  proof    ${url}/verification`)
  client.verify().then(
    (proofs) => console.log(`  router   ${router} is proven${platformOf(proofs)}`),
    (error: unknown) => console.error(`  router   ${reasonOf(error)}; every request tries again`),
  )
  await new Promise<void>((resolve) => {
    for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, resolve)
  })
  server.close()
}

/** The TLS key of the first host, preceded by a note if its platform is simulated and proves nothing. */
function platformOf([first]: readonly Proof[]): string {
  return `${first?.simulated === true ? ON_SIMULATED : ''}: ${first?.tlsSpkiSha256}`
}

function lineOf({ method, milliseconds, path, receipt, status }: ProxiedRequest): string {
  return `${method} ${asciiOnly(path)} ${status} ${milliseconds} ms${verdictOf(receipt)}`
}

function verdictOf(receipt: ProxiedRequest['receipt']): string {
  if (receipt === undefined) return ''
  if (receipt === 'not_asked_for') return '  receipt not asked for'
  const held = receipt.simulated ? 'holds (simulated platform)' : 'holds'
  const verdict = receipt.ok ? held : `DOES NOT HOLD: ${receipt.failed.join(', ')}`
  return `  receipt ${asciiOnly(receipt.id ?? 'missing')} ${verdict}`
}

async function readApiKey(file: string | undefined): Promise<string | undefined> {
  if (file !== undefined) return asApiKey(await readText(file), file)
  const key = process.env['CMR_API_KEY']
  return key === undefined ? undefined : asApiKey(key, 'CMR_API_KEY')
}

function asApiKey(text: string, source: string): string {
  const key = text.trim()
  if (isBearerToken(key)) return key
  throw new InputError(
    `${source} holds no API key: it is one line of letters of ASCII, without spaces`,
  )
}

function parsePort(text: string): number {
  if (/^\d{1,5}$/.test(text) && Number(text) <= 65_535) return Number(text)
  throw new InvalidArgumentError('give a port number, or 0 for any free port')
}

/** Replaces an option of the library at the start of a message with the flag of this command. */
function withFlags(message: string): string {
  const [, option = '', rest = ''] = /^([\w.]+)(: [^]*)$/.exec(message) ?? []
  const flag = FLAGS[option]
  return flag === undefined ? message : `${flag}${rest}`
}

/** The message of a failed `fetch` says only that it failed; the reason is in its cause. */
function reasonOf(thrown: unknown): string {
  const cause = thrown instanceof TypeError ? thrown.cause : undefined
  const error = cause instanceof Error && cause.message !== '' ? cause : thrown
  return error instanceof Error ? asciiOnly(error.message) : 'it cannot be proven'
}

function explain(error: unknown, words: readonly string[]): number {
  const taken = error instanceof Error && 'code' in error && error.code === 'EADDRINUSE'
  return explainOther(taken ? new InputError(PORT_TAKEN, { cause: error }) : error, words)
}
