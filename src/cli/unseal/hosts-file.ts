import { dirname, resolve } from 'node:path'
import { z } from 'zod'
import { defaultStatePath } from '../../client/node/bundle-state.ts'
import { InputError } from '../verify/input-error.ts'
import { readJson } from '../verify/read-input.ts'

const hostSchema = z.strictObject({
  name: z.string().min(1),
  /** `https://host:port` */
  address: z.url({ protocol: /^https$/ }),
  /** The configuration that must be in effect on the router. */
  configuration: z.string(),
  secrets: z.string(),
})

const hostsSchema = z.strictObject({
  /** The release root's public JWK. */
  root_key: z.string(),
  /** The operator's private JWK. */
  operator_key: z.string(),
  /** The operator's own copy of the trust bundle, read again at each check. */
  bundle: z.string().optional(),
  environment: z.string().optional(),
  allow_simulated: z.boolean().default(false),
  require_crl: z.boolean().default(false),
  /** The file with the last accepted trust bundle. */
  state: z.string().optional(),
  /** The file with the last ledger position of each host. */
  ledger_positions: z.string(),
  poll_seconds: z.number().min(0.1).max(3_600).default(10),
  /** Names must be unique: ledger positions are stored by name. */
  hosts: z
    .array(hostSchema)
    .min(1)
    .refine((hosts) => new Set(hosts.map(({ name }) => name)).size === hosts.length, {
      error: 'two hosts have the same name',
    }),
})

export type HostsFile = z.output<typeof hostsSchema>
export type Host = HostsFile['hosts'][number]

/**
 * Reads the hosts file. Relative paths in it are resolved against its directory.
 * @throws InputError when the file or one that it names cannot be read or is invalid
 * @throws MalformedEvidence when a key or a policy cannot be parsed
 */
export async function readHostsFile(path: string): Promise<HostsFile & { readonly state: string }> {
  const parsed = hostsSchema.safeParse(await readJson(path))
  if (!parsed.success) {
    const [issue] = parsed.error.issues
    throw new InputError(`${path}: ${issue?.path.join('.') || 'the top'}: ${issue?.message}`)
  }
  const at = (file: string) => resolve(dirname(path), file)
  const { hosts, state, bundle, ...rest } = parsed.data
  return {
    ...rest,
    bundle: bundle === undefined ? undefined : at(bundle),
    root_key: at(rest.root_key),
    operator_key: at(rest.operator_key),
    ledger_positions: at(rest.ledger_positions),
    state: stateAt(state, at),
    hosts: hosts.map((host) => ({
      ...host,
      configuration: at(host.configuration),
      secrets: at(host.secrets),
    })),
  }
}

/** `none` means that no bundle is remembered; it is not a path. */
function stateAt(state: string | undefined, at: (file: string) => string): string {
  if (state === undefined) return defaultStatePath(process.env)
  return state === 'none' ? state : at(state)
}
