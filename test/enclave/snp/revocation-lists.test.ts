import { mkdtemp, readdir, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { beforeAll, describe, expect, it } from 'vitest'
import { CaptureError } from '../../../src/enclave/snp/capture-error.ts'
import { certificateDirectory } from '../../../src/enclave/snp/certificate-cache.ts'
import { createRevocationLists } from '../../../src/enclave/snp/revocation-lists.ts'
import type { SimulatedChain } from '../../../src/enclave/simulated/chain.ts'
import { utf8, type Bytes } from '../../../src/protocol/bytes.ts'
import {
  DAY_MS,
  NOW,
  revocationList,
  syntheticAuthority,
  syntheticChain,
} from '../../support/synthetic-snp.ts'

let chip: SimulatedChain
let list: Bytes

beforeAll(async () => {
  chip = await syntheticChain()
  list = await revocationList([7])
}, 60_000)

type Answer = () => Promise<Bytes>

/** A key service whose answer can change, and a clock that can be moved. */
async function setUp(answer: Answer, directory?: string) {
  const kept = directory ?? (await mkdtemp(join(tmpdir(), 'cmr-crl-')))
  const state = { answer, asked: 0, now: NOW }
  const find = createRevocationLists({
    kds: {
      revocationList() {
        state.asked++
        return state.answer()
      },
    },
    files: certificateDirectory(kept),
    now: () => state.now,
  })
  return { find, state, directory: kept }
}

const given = (der: Bytes) => async () => der
const down: Answer = () => Promise.reject(new CaptureError('no_chain', 'down'))

describe('createRevocationLists', () => {
  it('asks the key service once a day, and not for each capture', async () => {
    const { find, state } = await setUp(given(list))
    expect(await find(chip.pem)).toEqual(list)
    expect(await find(chip.pem)).toEqual(list)
    expect(state.asked).toBe(1)
    state.now += DAY_MS
    expect(await find(chip.pem)).toEqual(list)
    expect(state.asked).toBe(2)
  })

  it('keeps a list for a start without the key service, until its time is up', async () => {
    const { find, directory } = await setUp(given(list))
    await find(chip.pem)
    const later = await setUp(down, directory)
    expect(await later.find(chip.pem)).toEqual(list)
    later.state.now += 31 * DAY_MS
    expect(await later.find(chip.pem)).toBeUndefined()
  })

  it('asks again ten minutes after a failure, and has none until then', async () => {
    const { find, state } = await setUp(down)
    expect(await find(chip.pem)).toBeUndefined()
    state.answer = given(list)
    expect(await find(chip.pem)).toBeUndefined()
    state.now += 600_000
    expect(await find(chip.pem)).toEqual(list)
  })

  it('never accepts a list that the root did not sign, whatever its source', async () => {
    const { ask } = await syntheticAuthority()
    const forged = await revocationList([], { key: ask.privateKey })
    const other = await revocationList([], { issuer: 'ARK-Milan' })
    for (const untrusted of [forged, other, utf8('no list')]) {
      const { find, state, directory } = await setUp(given(untrusted))
      expect(await find(chip.pem, untrusted)).toBeUndefined()
      expect(await readdir(directory)).toEqual([])
      state.answer = given(list)
      state.now += 600_000
      expect(await find(chip.pem)).toEqual(list)
      for (const name of await readdir(directory)) await writeFile(join(directory, name), untrusted)
      expect(await (await setUp(down, directory)).find(chip.pem)).toBeUndefined()
    }
  })

  it('never takes an older list for a newer one', async () => {
    const newer = await revocationList([7, 8], { since: NOW - 3_600_000 })
    const { find, state } = await setUp(given(newer))
    expect(await find(chip.pem, list)).toEqual(newer)
    state.answer = given(list)
    state.now += DAY_MS
    expect(await find(chip.pem, list)).toEqual(newer)
  })

  it('takes what the host gave where the key service gives nothing', async () => {
    const { find } = await setUp(down)
    expect(await find(chip.pem, list)).toEqual(list)
  })

  it('requests nothing for a simulated chain', async () => {
    const { find, state } = await setUp(given(list))
    expect(await find((await syntheticChain({ arkName: 'ARK-Simulated' })).pem)).toBeUndefined()
    expect(state.asked).toBe(0)
  })
})
