import { PROVIDER_WORDS, sound } from '../faults/answers.ts'
import { startFaultProvider, type FaultProvider, type Script } from '../support/fault-provider.ts'
import { ATTACKED_MODELS } from './siege-attacks.ts'

/** The provider that the attackers ask: sound for those who flood it, and one that finds another misdeed each time. */

const MIB = 1024 * 1024
const JSON_HEAD = { 'content-type': 'application/json' }

const MISDEEDS: readonly Script[] = [
  ({ wire }) => wire.head('099 X', { 'content-length': 0 }),
  ({ wire }) => wire.raw('HTTP/1.1 101 X\r\nupgrade: x\r\nconnection: upgrade\r\n\r\n'),
  ({ wire }) => wire.raw(`HTTP/1.1 200 OK\r\n${'x: y\r\n'.repeat(5_000)}`),
  async ({ wire }) => {
    wire.head(200, JSON_HEAD)
    for (let sent = 0; sent < 20 && !wire.over; sent++) await wire.sendSlowly(' '.repeat(MIB))
    wire.end()
  },
  ({ wire }) => {
    wire.head(200, JSON_HEAD)
    wire.send(`{"choices": [${'{},'.repeat(200_000)}{}], "x": "${PROVIDER_WORDS}"}`)
    wire.end()
  },
  ({ wire }) => {
    wire.head(200, JSON_HEAD)
    wire.send(`{"choices": [${PROVIDER_WORDS}`)
    wire.reset()
  },
]

const hostile: Script = (call) => MISDEEDS[call.number % MISDEEDS.length]?.(call)

export function startSiegeProvider(): Promise<FaultProvider> {
  return startFaultProvider(({ model }) => (model === ATTACKED_MODELS.hostile ? hostile : sound), {
    keepsCalls: false,
  })
}
