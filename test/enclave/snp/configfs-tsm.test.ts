import { describe, expect, it } from 'vitest'
import { utf8, type Bytes } from '../../../src/protocol/bytes.ts'
import { CaptureError } from '../../../src/enclave/snp/capture-error.ts'
import { requestTsmReport } from '../../../src/enclave/snp/configfs-tsm.ts'
import { createQueuedSource } from '../../../src/enclave/snp/queued-source.ts'
import { FakeTsmTree } from './fake-tsm-tree.ts'

const DATA = new Uint8Array(64).fill(7)

function request(tree: FakeTsmTree, data: Bytes = DATA) {
  let names = 0
  return requestTsmReport(data, { files: tree, root: '/tsm', newName: () => `r${names++}` })
}

async function refusal(tree: FakeTsmTree, data?: Bytes): Promise<readonly [string, string]> {
  const error: unknown = await request(tree, data).catch((thrown: unknown) => thrown)
  if (!(error instanceof CaptureError)) throw new Error('not refused', { cause: error })
  return [error.fault, error.message]
}

describe('requestTsmReport', () => {
  it('writes 64 bytes once, in a directory of its own, and removes it', async () => {
    const tree = new FakeTsmTree({ certificateTable: utf8('table') })
    const { report, certificateTable, provider } = await request(tree)
    expect(report.subarray(0x50, 0x90)).toEqual(DATA)
    expect(certificateTable).toEqual(utf8('table'))
    expect(provider).toBe('sev_guest')
    expect(tree.log).toEqual([
      'mkdir /tsm/r0',
      'read provider',
      'read generation',
      'write inblob 64',
      'read outblob',
      'read auxblob',
      'read generation',
      'rmdir /tsm/r0',
    ])
  })

  it('refuses to ask with other than 64 bytes', async () => {
    const tree = new FakeTsmTree()
    expect(await refusal(tree, new Uint8Array(32))).toEqual([
      'invalid_request',
      'the report provider refused the request as invalid (32 bytes instead of 64)',
    ])
    expect(tree.log).toEqual([])
  })

  it.each([
    ['ENOENT', 'mkdir', 'no_provider'],
    ['ENODEV', 'mkdir', 'no_provider'],
    ['EACCES', 'mkdir', 'no_permission'],
    ['EPERM', 'inblob', 'no_permission'],
    ['ENXIO', 'mkdir', 'provider_gone'],
    ['ENXIO', 'outblob', 'provider_gone'],
    ['EBUSY', 'inblob', 'busy'],
    ['EINVAL', 'outblob', 'invalid_request'],
    ['EFBIG', 'outblob', 'too_big'],
    ['EIO', 'outblob', 'reports_disabled'],
    ['ENOTTY', 'outblob', 'reports_disabled'],
    ['ETIMEDOUT', 'outblob', 'throttled'],
    ['EAGAIN', 'outblob', 'try_again'],
    ['EWOULDBLOCK', 'auxblob', 'try_again'],
    ['EFAULT', 'inblob', 'bad_address'],
    ['EWHATEVER', 'outblob', 'unknown'],
  ])('names %s at %s as %s', async (code, step, fault) => {
    const tree = new FakeTsmTree({ fail: { step, code } })
    const [named, message] = await refusal(tree)
    expect(named).toBe(fault)
    expect(message).toMatch(new RegExp(`\\(${code} at ${step}\\)$`))
    expect(tree.directories.size).toBe(0)
  })

  it.each([
    [{ report: () => new Uint8Array() }, 'empty_report', 'the report is empty'],
    [
      { report: () => new Uint8Array(1183) },
      'wrong_size',
      'the report is not 1184 bytes (1183 bytes)',
    ],
    [
      { report: () => new Uint8Array(1184) },
      'wrong_report_data',
      'the report does not carry the bytes that were asked for',
    ],
    [
      { provider: 'tdx_guest\n' },
      'other_provider',
      'the report provider is not sev_guest (tdx_guest)',
    ],
    [
      { generationsPerWrite: 2 },
      'raced',
      'the report was made for another request (generation 0 to 2)',
    ],
    [
      { taken: 32 },
      'invalid_request',
      'the report provider refused the request as invalid (took 32 bytes)',
    ],
  ])('refuses what %o gives', async (options, fault, message) => {
    const tree = new FakeTsmTree(options)
    expect(await refusal(tree)).toEqual([fault, message])
    expect(tree.directories.size).toBe(0)
  })

  it('gives its report even if the directory cannot be removed', async () => {
    const tree = new FakeTsmTree({ fail: { step: 'rmdir', code: 'EBUSY' } })
    expect((await request(tree)).report).toHaveLength(1184)
  })

  it('keeps two concurrent requests apart', async () => {
    const tree = new FakeTsmTree()
    const tools = { files: tree, root: '/tsm', newName: () => crypto.randomUUID() }
    const wanted = [1, 2, 3].map((value) => new Uint8Array(64).fill(value))
    const got = await Promise.all(wanted.map((data) => requestTsmReport(data, tools)))
    expect(got.map(({ report }) => report.slice(0x50, 0x90))).toEqual(wanted)
  })
})

describe('createQueuedSource', () => {
  it('captures one at a time, also after a failure', async () => {
    let running = 0
    let most = 0
    const source = createQueuedSource({
      async capture(data) {
        most = Math.max(most, ++running)
        await new Promise((resolve) => setTimeout(resolve, 1))
        running--
        if (data[0] === 2) throw new CaptureError('busy')
        return { report: data, chainPem: '', crl: undefined, provider: 'sev_guest' }
      },
    })
    const results = await Promise.allSettled(
      [1, 2, 3].map((value) => source.capture(Uint8Array.of(value))),
    )
    expect(results.map(({ status }) => status)).toEqual(['fulfilled', 'rejected', 'fulfilled'])
    expect(most).toBe(1)
  })
})
