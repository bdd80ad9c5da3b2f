import { readFileSync } from 'node:fs'
import { resolve } from 'node:path'
import { Command, Option } from 'commander'
import { readSecretFile, readSecrets } from '../host/serve/secrets.ts'
import { AdminApi, AdminCallFailed } from '../host/stack/admin-api.ts'
import { readLocalFile } from '../host/stack/local-file.ts'
import { StartError } from '../host/stack/start-error.ts'
import { isBearerToken } from '../protocol/bearer-token.ts'
import { isLoopbackHost } from '../protocol/loopback.ts'
import { namesUser } from '../protocol/url-user.ts'
import { days, eur, whole, wholeOrNone } from './admin/arguments.ts'
import {
  addCustomerChanges,
  addErasure,
  addKeyRotation,
  customerPath,
} from './admin/customer-changes.ts'
import { addCustomerUsage } from './admin/customer-usage.ts'
import { addOperatorCommands, withQuery } from './admin/operator-commands.ts'
import { explainer } from './failure.ts'
import type { Subcommand } from './subcommand.ts'

/**
 * `admin`: the admin interface from the command line. Prints a JSON answer as indented JSON and a text answer
 * unchanged. If the router refuses a call, its answer is printed on standard error and the exit status is 1.
 */
const program = new Command('admin')
  .description('Customers, keys and credit of a running router')
  .option('--base-url <url>', 'the router (default: ROUTER_URL, else the running local stack)')
  .option(
    '--token-file <file>',
    'file with the admin token, - for standard input (default: ADMIN_TOKEN or ADMIN_TOKEN_FILE, else that of the local stack)',
  )
  .option('--state-dir <path>', 'the state directory of the local stack (default: STATE_DIR)')
  .showHelpAfterError()

type Body = Record<string, unknown>

/** Calls the router and prints its answer. */
async function call(method: string, path: string, body?: Body): Promise<void> {
  const { api, address } = openApi()
  const answer = await api.call(method, path, body).catch((error: unknown) => {
    if (error instanceof AdminCallFailed) throw error
    throw new StartError(`the router cannot be reached at ${address}${reasonOf(error)}`, {
      cause: error,
    })
  })
  console.log(typeof answer === 'string' ? answer.trimEnd() : JSON.stringify(answer, null, 2))
}

function openApi(): { readonly api: AdminApi; readonly address: string } {
  const options = program.opts<{ baseUrl?: string; tokenFile?: string; stateDir?: string }>()
  const given = options.baseUrl ?? process.env['ROUTER_URL']
  const baseUrl = given === undefined ? undefined : originOf(given)
  const token = givenToken(options.tokenFile)
  if (token !== undefined && !isBearerToken(token)) {
    throw new StartError('the admin token is one line of letters of ASCII, without spaces')
  }
  if (baseUrl !== undefined && !isHere(baseUrl)) requirePrivate(baseUrl, token)
  if (baseUrl !== undefined && token !== undefined) {
    return { api: new AdminApi(baseUrl, token), address: baseUrl }
  }
  const local = readLocalFile(resolve(options.stateDir ?? process.env['STATE_DIR'] ?? '.state'))
  const address = baseUrl ?? local.base_url
  return { api: new AdminApi(address, token ?? local.admin_token), address }
}

function isHere(origin: string): boolean {
  return isLoopbackHost(new URL(origin).hostname)
}

/**
 * @throws StartError when the address is not https, because the network could read the token; or when no token was
 *   given for it, because the token of the local stack is for the local stack only
 */
function requirePrivate(origin: string, token: string | undefined): void {
  if (new URL(origin).protocol !== 'https:') {
    throw new StartError(
      `the admin token is not sent to ${origin} in the clear: give an https address, or that of the proxy on this machine`,
    )
  }
  if (token === undefined) {
    throw new StartError(
      `give the admin token of ${origin}, by --token-file, ADMIN_TOKEN or ADMIN_TOKEN_FILE`,
    )
  }
}

/** @throws StartError when the text is not an http or https URL, or when it contains a user name or password */
function originOf(text: string): string {
  const url = URL.canParse(text) ? new URL(text) : undefined
  if (url === undefined || !/^https?:$/.test(url.protocol)) {
    throw new StartError(`${text} is no address of a router, such as http://127.0.0.1:8787`)
  }
  if (namesUser(url)) {
    throw new StartError(
      'leave user name and password out of the address of the router, which takes the admin token alone',
    )
  }
  if (url.pathname !== '/') throw new StartError(`${text} has a path: give ${url.origin} alone`)
  return url.origin
}

/**
 * The token from a file, standard input or the environment. It is never a command-line argument: every user of the
 * machine can read the arguments of a process.
 * @throws StartError when a secret cannot be read
 */
function givenToken(file: string | undefined): string | undefined {
  if (file === '-') return readFileSync(0, 'utf8').trim()
  if (file !== undefined) {
    const { value, problem } = readSecretFile('--token-file', file)
    if (problem !== undefined) throw new StartError(problem)
    return value
  }
  const { values, problems } = readSecrets(['ADMIN_TOKEN'], process.env)
  const [problem] = problems
  if (problem !== undefined) throw new StartError(problem)
  return values['ADMIN_TOKEN']
}

/** The limits of a key, by their field names in the admin API. */
const KEY_LIMITS: Readonly<Record<string, readonly [flag: string, what: string]>> = {
  expires_at: ['--expires-at <time>', 'RFC 3339'],
  requests_per_minute: ['--requests-per-minute <count>', 'a whole number'],
  tokens_per_minute: ['--tokens-per-minute <count>', 'a whole number'],
  concurrent_requests: ['--concurrent-requests <count>', 'a whole number'],
  min_attestation: ['--min-attestation <strength>', 'simulated, hardware-os-unpinned or hardware'],
  limit_eur: ['--limit <eur>', 'the most that it may spend in a period'],
}

function withKeyLimits(command: Command): Command {
  for (const [name, [flag, what]] of Object.entries(KEY_LIMITS)) {
    const option = new Option(flag, what)
    command.addOption(COUNTS.has(name) ? option.argParser(wholeOrNone) : option)
  }
  return command
    .option('--models <selectors>', 'with commas between them')
    .addOption(
      new Option('--limit-reset <period>', 'when its spending is counted from zero again').choices([
        'none',
        'daily',
        'weekly',
        'monthly',
      ]),
    )
}

const COUNTS: ReadonlySet<string> = new Set([
  'requests_per_minute',
  'tokens_per_minute',
  'concurrent_requests',
])

const optionOf = (flag: string) => new Option(flag).attributeName()

function keyLimits(given: Readonly<Record<string, unknown>>): Body {
  const limits: Body = {}
  for (const [name, [flag]] of Object.entries(KEY_LIMITS)) {
    const value = given[optionOf(flag)]
    if (value !== undefined) limits[name] = value === 'none' ? null : value
  }
  const { models, limitReset } = given
  return {
    ...limits,
    ...(typeof models === 'string' && { models: models === 'none' ? null : models.split(',') }),
    ...(limitReset !== undefined && { limit_reset: limitReset }),
  }
}

const customers = program.command('customers').description('Customers')
customers
  .command('create')
  .requiredOption('--name <name>')
  .addOption(
    new Option('--billing <kind>', 'how the customer pays')
      .choices(['prepaid', 'postpaid'])
      .makeOptionMandatory(),
  )
  .option('--plan <plan>', 'a plan of the configuration')
  .option('--balance <eur>', 'opening balance of a prepaid customer', eur)
  .option('--receipt-retention-days <days>', 'where it differs from the service', days)
  .action((given: Record<string, unknown>) =>
    call('POST', '/admin/customers', {
      name: given['name'],
      billing: given['billing'],
      plan: given['plan'],
      balance_eur: given['balance'],
      receipt_retention_days: given['receiptRetentionDays'],
    }),
  )
customers
  .command('list')
  .description('Oldest first')
  .option('--limit <count>', 'customers of a page', whole)
  .option('--after <customer>', 'the last id of the page before')
  .action((given: Record<string, unknown>) => call('GET', withQuery('/admin/customers', given)))
customers
  .command('show <customer>')
  .action((customer: string) => call('GET', customerPath(customer)))
addCustomerChanges(customers, call)
addErasure(customers, call)
addCustomerUsage(customers, call)

const keys = program.command('keys').description('API keys of a customer')
withKeyLimits(keys.command('create <customer>').requiredOption('--name <name>')).action(
  (customer: string, given: Record<string, unknown>) =>
    call('POST', customerPath(customer, 'keys'), { name: given['name'], ...keyLimits(given) }),
)
withKeyLimits(
  keys
    .command('change <customer> <prefix>')
    .description('Options left out stay; "none" lifts a limit')
    .option('--name <name>'),
).action((customer: string, prefix: string, given: Record<string, unknown>) =>
  call('PATCH', customerPath(customer, 'keys', prefix), {
    ...('name' in given && { name: given['name'] }),
    ...keyLimits(given),
  }),
)
addKeyRotation(keys, call)
keys
  .command('list <customer>')
  .action((customer: string) => call('GET', customerPath(customer, 'keys')))
keys
  .command('delete <customer> <prefix>')
  .action((customer: string, prefix: string) =>
    call('DELETE', customerPath(customer, 'keys', prefix)),
  )

program
  .command('credits')
  .description('Credit of a customer')
  .command('add <customer>')
  .requiredOption('--amount <eur>', 'euros', eur)
  .requiredOption('--reference <text>', 'a reference that repeats changes nothing')
  .action((customer: string, given: { amount: string; reference: string }) =>
    call('POST', customerPath(customer, 'credits'), {
      amount_eur: given.amount,
      reference: given.reference,
    }),
  )

addOperatorCommands(program, call)

export function adminSubcommand(): Subcommand {
  return { command: program, explain }
}

const explainOther = explainer({ told: [StartError] })

function explain(error: unknown, words: readonly string[]): number {
  if (!(error instanceof AdminCallFailed)) return explainOther(error, words)
  console.error(JSON.stringify(error.body, null, 2))
  return 1
}

const OWN_CERTIFICATE = new Set(['DEPTH_ZERO_SELF_SIGNED_CERT', 'SELF_SIGNED_CERT_IN_CHAIN'])

function reasonOf(error: unknown): string {
  const cause = error instanceof Error ? error.cause : undefined
  const code = cause instanceof Error && 'code' in cause ? String(cause.code) : undefined
  if (code === undefined) return ''
  const hint = OWN_CERTIFICATE.has(code) ? ': on its own machine, call its HTTP address' : ''
  return ` (${code})${hint}`
}
