import { ATTACKS } from './siege-attacks.ts'
import { startSiegeProvider } from './siege-provider.ts'
import { toAttackersSchema, type FromAttackers } from './siege-messages.ts'

/**
 * The attackers and the provider that they ask, in a process of their own: what they do to themselves is nothing that
 * the customer beside them should be measured by.
 */

let ends = new AbortController()
let attacks: Promise<unknown> = Promise.resolve()
let deeds: Record<string, Record<string, number>> = {}

const provider = await startSiegeProvider()
tell({ type: 'open', providerPort: provider.port })

process.on('message', (received) => {
  const message = toAttackersSchema.parse(received)
  if (message.type === 'attack') begin(message.baseUrl, message.keys)
  else void stop()
})
process.on('disconnect', () => process.exit())

function begin(baseUrl: string, keys: Readonly<Record<string, string>>): void {
  ends = new AbortController()
  deeds = {}
  attacks = Promise.allSettled(
    Object.entries(keys).map(async ([name, key]) => {
      const own: Record<string, number> = (deeds[name] = {})
      const count = (status: number | 'none') => (own[status] = (own[status] ?? 0) + 1)
      await ATTACKS[name]?.({ baseUrl, key, ends: ends.signal, count })
    }),
  )
}

async function stop(): Promise<void> {
  ends.abort()
  await attacks
  tell({ type: 'deeds', deeds })
}

function tell(message: FromAttackers): void {
  process.send?.(message)
}
