import { EventEmitter } from 'node:events'
import { describe, expect, test } from 'vitest'
import type { FromDaemon } from '../../../src/protocol/boot.ts'
import { startOutcome } from '../../../src/host/stack/start-daemon.ts'

const MISSING: FromDaemon = { type: 'revocation_list_missing', reason: 'no source has one' }
const REFUSED: FromDaemon = { type: 'refused', reason: 'no report' }
const RELOADED: FromDaemon = { type: 'reload_unchanged' }

/** A daemon that says these one after the other. */
async function outcomeOf(messages: readonly FromDaemon[]) {
  const daemon = new EventEmitter()
  const said: FromDaemon[] = []
  const outcome = startOutcome(daemon, (message) => void said.push(message))
  for (const message of messages) daemon.emit('message', message)
  return { outcome: await outcome, said }
}

describe('the start of a daemon', () => {
  test('does not end with what it reports meanwhile, which is passed on', async () => {
    const ready: FromDaemon = {
      type: 'ready',
      ready: {
        linkPort: 1,
        carrierPorts: [],
        tls: { certPem: '', keyPem: '', spkiSha256: '' },
        kid: '',
        rootKeyPath: '',
        generation: 1,
        release: null,
      },
    }
    expect(await outcomeOf([MISSING, ready, RELOADED])).toEqual({
      outcome: ready,
      said: [MISSING, RELOADED],
    })
  })

  test('ends with a refusal; a later one is passed on', async () => {
    expect(await outcomeOf([MISSING, REFUSED, REFUSED])).toEqual({
      outcome: REFUSED,
      said: [MISSING, REFUSED],
    })
  })
})
