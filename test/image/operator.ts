import { execFile, spawn } from 'node:child_process'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { z } from 'zod'
import { PROJECT_DIR } from '../../src/host/stack/settings.ts'
import { callGuest } from './call-guest.ts'
import type { Guest } from './guest.ts'
import type { GuestWorld } from './guest-world.ts'

/** The commands of an operator and of a customer, run as they would run them against one guest. */

const PROGRAM = join(PROJECT_DIR, 'src/cli/main.ts')

export interface CommandResult {
  /** The exit status. */
  readonly status: number
  readonly output: string
}

export interface Broker {
  said(decision: string): boolean
  stop(): void
}

export const addressOf = (guest: Guest) => `https://127.0.0.1:${guest.port}`

function run(args: readonly string[], env: Readonly<Record<string, string>> = {}) {
  const options = { env: { ...process.env, ...env } }
  return promisify(execFile)(process.execPath, [PROGRAM, ...args], options).then(
    ({ stdout }): CommandResult => ({ status: 0, output: stdout }),
    ({ code, stdout, stderr }): CommandResult => ({ status: code, output: `${stdout}${stderr}` }),
  )
}

/** Runs `unseal` with other flags than usual, and answers its status and first line. */
export async function unseal(
  world: GuestWorld,
  guest: Guest,
  changes: Readonly<Record<string, string>> = {},
) {
  const flags = {
    '--root-key': world.at('root.jwk.json'),
    '--operator-key': world.at('operator.private.jwk.json'),
    '--secrets': world.at('secrets.json'),
    '--configuration': world.at('router.json'),
    '--state': 'none',
    ...changes,
  }
  const args = ['unseal', addressOf(guest), '--allow-simulated', ...Object.entries(flags).flat()]
  const { status, output } = await run(args)
  return { status, line: output.split('\n')[0] }
}

/** Fetches a receipt and verifies it with the evidence of router and provider. */
export async function verifyReceipt(
  world: GuestWorld,
  guest: Guest,
  { id, key }: { readonly id: string; readonly key: string },
): Promise<CommandResult> {
  const receipt = await callGuest(guest, 'GET', `/v1/receipts/${id}`, key, undefined)
  writeFileSync(world.at('receipt.json'), JSON.stringify(receipt.json))
  const router = ['--base-url', addressOf(guest), '--root-key', world.at('root.jwk.json')]
  const provider = ['--provider-root-key', world.at('provider-root.jwk.json'), '--require-provider']
  const policy = ['--allow-simulated', '--environment', 'local', '--state', 'none']
  const args = ['verify', 'receipt', world.at('receipt.json'), ...router, ...provider, ...policy]
  return run(args, { CMR_API_KEY: key })
}

const receiptSchema = z.object({ receipt: z.string() })
const claimsSchema = z.object({ inference_attestation: z.unknown() })

/** What the receipt that was verified last says of the provider. */
export function inferenceHop(world: GuestWorld): unknown {
  const text = readFileSync(world.at('receipt.json'), 'utf8')
  const [, payload = ''] = receiptSchema.parse(JSON.parse(text)).receipt.split('.')
  const claims = claimsSchema.parse(JSON.parse(Buffer.from(payload, 'base64url').toString()))
  return claims.inference_attestation
}

/** Starts `unseal --watch` for one guest. */
export function startBroker(world: GuestWorld, guest: Guest): Broker {
  const host = {
    name: 'guest-1',
    address: addressOf(guest),
    configuration: 'router.json',
    secrets: 'secrets.json',
  }
  const hosts = {
    root_key: 'root.jwk.json',
    operator_key: 'operator.private.jwk.json',
    allow_simulated: true,
    state: 'bundles.json',
    ledger_positions: 'positions.json',
    poll_seconds: 2,
    hosts: [host],
  }
  writeFileSync(world.at('hosts.json'), JSON.stringify(hosts))
  const args = [PROGRAM, 'unseal', '--watch', world.at('hosts.json')]
  const child = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'inherit'] })
  let output = ''
  child.stdout.on('data', (chunk: Buffer) => (output += chunk.toString()))
  return {
    said: (decision) => output.includes(`"decision":"${decision}"`),
    stop: () => void child.kill('SIGKILL'),
  }
}
