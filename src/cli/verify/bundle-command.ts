import { Command } from 'commander'
import { judge, verdict, type Check } from '../../verify/check.ts'
import { headline } from '../../verify/headline.ts'
import { verifyTrustBundle } from '../../verify/trust-bundle.ts'
import {
  defaultStatePath,
  readAcceptedBundle,
  writeAcceptedBundle,
} from '../../client/node/bundle-state.ts'
import { acceptedEnvironments } from './environments.ts'
import { report } from './print.ts'
import { readBundle, readJson } from './read-input.ts'
import { parseNow } from './parse-now.ts'

interface BundleOptions {
  readonly rootKey: string
  readonly environment?: string
  readonly allowSimulated?: boolean
  readonly state: string
  readonly now?: number
  readonly json?: boolean
}

/** `verify bundle <file> --root-key <file>` */
export function bundleCommand(): Command {
  return new Command('bundle')
    .description('Verifies a trust bundle against the release root.')
    .argument('<file>', 'the bundle: a compact JWS, or as published; - for standard input')
    .requiredOption('--root-key <file>', "the release root's public JWK")
    .option('--environment <name>', 'the environment it must be for (default: production)')
    .option('--allow-simulated', 'accept a bundle of a local stack too')
    .option('--state <file|none>', 'remembers the last good bundle', defaultStatePath(process.env))
    .option('--now <time>', 'judge as of this time (RFC 3339)', parseNow)
    .option('--json', 'print JSON')
    .action(verifyBundle)
}

async function verifyBundle(file: string, options: BundleOptions): Promise<void> {
  const rootJwk = await readJson(options.rootKey)
  const jws = await readBundle(file)
  const result = await verifyTrustBundle(jws, rootJwk, {
    now: options.now ?? Date.now(),
    environments: acceptedEnvironments(options.environment, options.allowSimulated),
    lastAccepted: await readAcceptedBundle(options.state, rootJwk),
  })
  const { version, environment } = result.bundle ?? {}
  const simulated = environment === LOCAL
  const judged = simulated
    ? verdict([...result.checks, checkSimulated(options.allowSimulated)])
    : result
  if (judged.ok && result.accepted !== undefined)
    await writeAcceptedBundle(options.state, { ...result.accepted, jws })
  const proven = `the holder of the release root signed this bundle, version ${version}, and it is in force`
  report({ ...judged, summary: headline(judged, { proven, simulated }) }, options.json === true)
}

/** The environment of local stacks, whose platform is simulated. */
const LOCAL = 'local'

function checkSimulated(allowed: boolean | undefined): Check {
  const fault = allowed === true ? undefined : 'a bundle for simulated platforms; none is allowed'
  return judge('simulated_platform', fault, 'allowed')
}
