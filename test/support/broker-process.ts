import { spawn, type ChildProcess } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { PROJECT_DIR } from '../../src/host/stack/settings.ts'
import type { SealedWorld } from './sealed.ts'

interface BrokerChanges {
  readonly bundle?: string
  readonly configuration?: string
  readonly state?: string
}

/** Writes `hosts.json` with one router. */
export function writeHosts(
  world: SealedWorld,
  address: string,
  { configuration = 'router.json', ...changes }: BrokerChanges = {},
): void {
  const hosts = {
    root_key: 'root.jwk.json',
    operator_key: 'operator.private.jwk.json',
    allow_simulated: true,
    state: 'bundles.json',
    ledger_positions: 'positions.json',
    poll_seconds: 0.3,
    hosts: [{ name: 'guest-1', address, configuration, secrets: 'secrets.json' }],
    ...changes,
  }
  writeFileSync(world.at('hosts.json'), JSON.stringify(hosts))
}

/** Starts `unseal --watch` for one router. */
export function startBroker(world: SealedWorld, address: string, changes: BrokerChanges = {}) {
  writeHosts(world, address, changes)
  const program = join(PROJECT_DIR, 'src/cli/main.ts')
  const args = [program, 'unseal', '--watch', world.at('hosts.json')]
  const child: ChildProcess = spawn(process.execPath, args, {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  let output = ''
  child.stdout?.on('data', (chunk: Buffer) => (output += chunk.toString()))
  return {
    lines: () => output.split('\n'),
    said: (decision: string) => output.includes(`"decision":"${decision}"`),
    stop: () => void child.kill('SIGKILL'),
  }
}
