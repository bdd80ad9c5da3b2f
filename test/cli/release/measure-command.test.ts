import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { run as runProgram, type Run } from '../../support/run-program.ts'
import { makeFirmware } from '../../verify/launch/synthetic-firmware.ts'

const MEASUREMENT =
  '46704c5b666bda42822d2b63c25c79ba907efea56d25a77ba31b62c840dd6158dbb18df2d6157665e2d626dcdef06d24'
const GUEST = '--vcpus 4 --vcpu-type EPYC-v4 --guest-features 0x21'
const KERNEL = '--kernel kernel --initrd initrd --append'

let folder = ''
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'cmr-measure-'))
  await writeFile(join(folder, 'ovmf.fd'), makeFirmware())
  await writeFile(join(folder, 'kernel'), 'a kernel')
  await writeFile(join(folder, 'initrd'), 'an initrd')
})
afterAll(() => rm(folder, { recursive: true }))

/** Runs the release tool in the folder; `words` are separated by spaces, `last` may have some within. */
function release(words: string, last: readonly string[] = []): Promise<Run> {
  return runProgram(['release', ...words.split(' '), ...last], { cwd: folder })
}

const TEMPLATE = {
  environment: 'production',
  tcb_floor: { genoa: { bootloader: 10, tee: 0, snp: 27, microcode: 88 } },
  snp_policy: { allow_smt: true, required_platform_info: [] },
  revoked: { measurements: [], identity_tags: [], keys: [] },
}

describe('release measure', () => {
  it('prints the measurement alone', async () => {
    const run = await release(`measure --ovmf ovmf.fd ${GUEST} ${KERNEL}`, [
      'console=ttyS0 cmr.roothash=00',
    ])
    expect(run).toEqual({ code: 0, out: `${MEASUREMENT}\n`, err: '' })
  })

  it('prints what was measured with --json', async () => {
    const run = await release(`measure --json --ovmf ovmf.fd ${GUEST} ${KERNEL}`, ['a b'])
    expect(JSON.parse(run.out)).toMatchObject({
      measurement: expect.stringMatching(/^[0-9a-f]{96}$/),
      kernel_sha256: '4fff0d3e643b3894c17a0738fbdc591953aa722c9d42774425090accc4377126',
      command_line: 'a b',
      vcpus: 4,
      cpu_signature: '0x800f12',
      guest_features: '0x21',
    })
  })

  it.each([
    [
      `--ovmf ovmf.fd ${GUEST} --append quiet`,
      'an initrd or a command line is measured with its --kernel',
    ],
    [`--ovmf kernel ${GUEST}`, 'the firmware is not a whole number of 4 KiB pages'],
    [`--ovmf nothing.fd ${GUEST}`, 'nothing.fd cannot be read'],
  ])('refuses %s', async (words, message) => {
    expect(await release(`measure ${words}`)).toEqual({
      code: 1,
      out: '',
      err: `error: ${message}\n`,
    })
  })

  it('refuses guest features without SNPActive', async () => {
    const run = await release(
      'measure --ovmf ovmf.fd --vcpus 1 --vcpu-type EPYC-v4 --guest-features 0x20',
    )
    expect(run.code).toBe(2)
    expect(run.err).toContain('give hex such as 0x1 or 0x21; bit 0 (SNPActive) is always set')
  })

  it('gives a measurement that sign-bundle takes', async () => {
    await release('keygen --private root.private.jwk.json --public root.jwk.json')
    await release('keygen --private key.private.jwk.json --public key.jwk.json')
    await release(
      'sign-manifest --key key.private.jwk.json --version 1.0.0 --binary kernel --image initrd --verifier initrd --out manifest.jws',
    )
    await writeFile(join(folder, 'template.json'), JSON.stringify(TEMPLATE))
    const bundle = await release(
      'sign-bundle --root-key root.private.jwk.json --template template.json --manifest-key key.jwk.json ' +
        `--manifest manifest.jws --allow ${MEASUREMENT} --out trust.json`,
    )
    expect(bundle).toMatchObject({ code: 0, err: '' })
  })
})
