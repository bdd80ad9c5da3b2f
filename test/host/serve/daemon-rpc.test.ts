import { afterEach, describe, expect, it, vi } from 'vitest'
import type { ToDaemon } from '../../../src/protocol/boot.ts'
import { DaemonRpc } from '../../../src/host/serve/daemon-rpc.ts'

function openRpc() {
  const sent: ToDaemon[] = []
  const rpc = new DaemonRpc((message) => sent.push(message))
  const reload = () => rpc.reloaded((id) => sent.push({ type: 'reload', id }))
  return { rpc, sent, reload }
}

const inOneTurn = () => new Promise((resolve) => setImmediate(resolve))

describe('a reload', () => {
  it('is answered by the answer that repeats its id, and by no late one of a former reload', async () => {
    const { rpc, sent, reload } = openRpc()
    const first = reload()
    await inOneTurn()
    rpc.receive({ type: 'reload_unchanged', id: 1 })
    expect(await first).toBe(null)
    const second = reload()
    await inOneTurn()
    rpc.receive({ type: 'reloaded', id: 1, generation: 2, configText: '{}' })
    rpc.receive({ type: 'reload_unchanged' })
    rpc.receive({ type: 'reload_refused', id: 2, reason: 'a member twice' })
    expect(await second).toBe('a member twice')
    expect(sent).toEqual([
      { type: 'reload', id: 1 },
      { type: 'reload', id: 2 },
    ])
  })

  it('fails when the daemon ends before it answered, and the next one is sent', async () => {
    const { rpc, reload } = openRpc()
    const lost = reload()
    await inOneTurn()
    rpc.ended()
    await expect(lost).rejects.toThrow('the enclave daemon ended before it answered: try again')
    const next = reload()
    await inOneTurn()
    rpc.receive({ type: 'reloaded', id: 2, generation: 2, configText: '{}' })
    expect(await next).toBe(null)
  })
})

describe('a new key', () => {
  afterEach(() => {
    vi.useRealTimers()
  })

  it('is waited for as long as a reload, because the daemon binds it also after several captures', async () => {
    const { rpc } = openRpc()
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
    const bound = rpc.renewTls()
    await vi.advanceTimersByTimeAsync(180_000)
    rpc.receive({ type: 'tls_renewed', tls: { certPem: 'c', keyPem: 'k', spkiSha256: 's' } })
    expect((await bound).spkiSha256).toBe('s')
  })

  it('fails at once when no daemon is running, and nothing waits behind it', async () => {
    const away = 'the enclave daemon is being restarted: try again'
    const rpc = new DaemonRpc(() => {
      throw new Error(away)
    })
    await expect(rpc.prepareTls([])).rejects.toThrow(away)
    await expect(rpc.renewTls()).rejects.toThrow(away)
  })

  it('fails when the daemon ends before it answered', async () => {
    const { rpc, sent } = openRpc()
    const lost = rpc.prepareTls([])
    await inOneTurn()
    expect(sent).toEqual([{ type: 'prepare_tls', domains: [] }])
    rpc.ended()
    await expect(lost).rejects.toThrow('the enclave daemon ended before it answered: try again')
  })
})
