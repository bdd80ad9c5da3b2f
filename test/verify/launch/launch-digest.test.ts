import { describe, expect, it } from 'vitest'
import { toHex } from '../../../src/protocol/bytes.ts'
import { sha256Hex } from '../../../src/protocol/digest.ts'
import { cpuSignature } from '../../../src/verify/launch/cpu-signature.ts'
import { computeLaunchDigest, type Launch } from '../../../src/verify/launch/launch-digest.ts'
import { LaunchError } from '../../../src/verify/launch/launch-error.ts'
import { makeFirmware, type FirmwarePlan, type SectionRow } from './synthetic-firmware.ts'

/** The expected digests were computed for these very bytes by sev-snp-measure 0.0.13, an independent tool. */

const KERNEL = {
  kernelSha256: await sha256Hex('a kernel'),
  initrdSha256: await sha256Hex('an initrd'),
  commandLine: 'console=ttyS0 cmr.roothash=00',
}

const WITHOUT_KERNEL: SectionRow[] = [
  [0x800000, 0x1000, 0x01],
  [0x80d000, 0x1000, 0x02],
  [0x80e000, 0x1000, 0x03],
]

async function digestOf(launch: Partial<Launch>): Promise<string> {
  const digest = await computeLaunchDigest({
    firmware: makeFirmware(),
    kernel: undefined,
    processors: 1,
    cpuSignature: cpuSignature('EPYC-v4'),
    guestFeatures: 1n,
    ...launch,
  })
  return toHex(digest)
}

describe('the launch digest', () => {
  it('is what an independent tool computes for four processors and a kernel', async () => {
    expect(await digestOf({ kernel: KERNEL, processors: 4, guestFeatures: 0x21n })).toBe(
      '46704c5b666bda42822d2b63c25c79ba907efea56d25a77ba31b62c840dd6158dbb18df2d6157665e2d626dcdef06d24',
    )
  })

  it('is what an independent tool computes without an initrd', async () => {
    const kernel = { ...KERNEL, initrdSha256: await sha256Hex('') }
    expect(await digestOf({ kernel, cpuSignature: cpuSignature('EPYC-Turin') })).toBe(
      '02e8ed185c58ba983dde3ec8003373bb71a3cfbefba1c36c074729c5a413b0d9c96d6eca58cf2f259b8f7ebb1782a81f',
    )
  })

  it('is what an independent tool computes for a guest that boots from a disk', async () => {
    expect(await digestOf({ processors: 2, cpuSignature: cpuSignature('EPYC-Milan-v2') })).toBe(
      '103dbad54863ada91d7e31fcb60c40e388343c536bb4d6c81cd1f78becff49837677b38f11960013804e3ba30b48c887',
    )
  })

  it('is what an independent tool computes for firmware without kernel hashes', async () => {
    const firmware = makeFirmware({ sections: WITHOUT_KERNEL, hashesTableAddress: undefined })
    expect(await digestOf({ firmware, cpuSignature: cpuSignature('0xa20f10') })).toBe(
      '8a27e28d6b581a59d6c336b7e082dc1c2ec11effa9085efd9ee132ad86ab543011ac02322cc898fb1deefce0834642f5',
    )
  })

  it('changes with everything that is measured', async () => {
    const touched = makeFirmware()
    touched[100] = (touched[100] ?? 0) ^ 1
    const digests = await Promise.all([
      digestOf({ kernel: KERNEL }),
      digestOf({ kernel: KERNEL, firmware: touched }),
      digestOf({ kernel: { ...KERNEL, kernelSha256: await sha256Hex('another kernel') } }),
      digestOf({ kernel: { ...KERNEL, initrdSha256: await sha256Hex('another initrd') } }),
      digestOf({ kernel: { ...KERNEL, commandLine: `${KERNEL.commandLine} ` } }),
      digestOf({ kernel: KERNEL, processors: 2 }),
      digestOf({ kernel: KERNEL, processors: 3 }),
      digestOf({ kernel: KERNEL, cpuSignature: cpuSignature('EPYC-Genoa') }),
      digestOf({ kernel: KERNEL, guestFeatures: 0x21n }),
      digestOf({ kernel: undefined }),
    ])
    expect(new Set(digests).size).toBe(digests.length)
  })
})

const REFUSED: readonly {
  what: string
  plan?: Partial<FirmwarePlan>
  launch?: Partial<Launch>
  message: string
}[] = [
  {
    what: 'a kernel that the firmware would not check',
    plan: { sections: WITHOUT_KERNEL },
    launch: { kernel: KERNEL },
    message:
      'the firmware does not check a kernel: use a build with kernel hashes (OvmfPkg/AmdSev)',
  },
  {
    what: 'firmware that measures a page for kernel hashes and never looks there',
    plan: { hashesTableAddress: undefined },
    launch: { kernel: KERNEL },
    message:
      'the firmware does not check a kernel: use a build with kernel hashes (OvmfPkg/AmdSev)',
  },
  {
    what: 'firmware that looks for kernel hashes in a page that is not measured',
    plan: { hashesTableAddress: 0x812000 },
    launch: { kernel: KERNEL },
    message: 'the firmware looks for kernel hashes outside the page it has measured',
  },
  {
    what: 'a place for kernel hashes too near the end of its page',
    plan: { hashesTableAddress: 0x811f80 },
    launch: { kernel: KERNEL },
    message: "the firmware's place for kernel hashes crosses a page",
  },
  {
    what: 'a command line with a NUL in it',
    launch: { kernel: { ...KERNEL, commandLine: 'quiet\0init=/bin/sh' } },
    message: 'the command line has a NUL in it',
  },
  {
    what: 'several processors where the firmware can start one',
    plan: { resetAddress: undefined },
    launch: { processors: 2 },
    message: 'the firmware has no reset block: it can start one processor only',
  },
  {
    what: 'no processor',
    launch: { processors: 0 },
    message: 'a guest has one processor or more',
  },
  {
    what: 'firmware without SEV metadata',
    plan: { metadata: false },
    message: 'the firmware has no SEV metadata: it was not built for SEV-SNP',
  },
  {
    what: 'metadata of another version',
    plan: { metadataVersion: 2 },
    message: "the firmware's SEV metadata is broken",
  },
  {
    what: 'a section of a type it does not know',
    plan: { sections: [[0x800000, 0x1000, 0x11]] },
    message: 'the firmware has a metadata section of unknown type 17',
  },
  {
    what: 'a section that is not in whole pages',
    plan: { sections: [[0x800000, 0x1800, 1]] },
    message: "the firmware's SEV metadata is broken",
  },
  {
    what: 'two pages of secrets',
    plan: { sections: [[0x800000, 0x2000, 2]] },
    message: "the firmware's SEV metadata is broken",
  },
  {
    what: 'firmware that is not in whole pages',
    launch: { firmware: new Uint8Array(4097) },
    message: 'the firmware is not a whole number of 4 KiB pages',
  },
  {
    what: 'a file that is no OVMF volume',
    launch: { firmware: new Uint8Array(4096) },
    message: 'the firmware has no table of GUIDs at its end: is it OVMF?',
  },
]

describe('no launch digest', () => {
  it.each(REFUSED)('is given for $what', async ({ plan, launch, message }) => {
    const firmware = makeFirmware(plan)
    await expect(digestOf({ firmware, ...launch })).rejects.toThrow(new LaunchError(message))
  })

  it('is given for a table whose entries overrun it, wherever a length is wrong', async () => {
    const whole = makeFirmware()
    // Lengths of the three entries, which lie before the 18 bytes of the footer and the last 32 of the volume.
    const ends = [50, 50 + 22, 50 + 22 + 26]
    const lengths = ends.flatMap((end) => [0, 17, 0xffff].map((length) => ({ end, length })))
    for (const { end, length } of lengths) {
      const firmware = whole.slice()
      new DataView(firmware.buffer).setUint16(firmware.length - end - 18, length, true)
      await expect(digestOf({ firmware })).rejects.toThrow(
        new LaunchError("the firmware's table of GUIDs is broken"),
      )
    }
  })
})

describe('a CPU type', () => {
  it('is a QEMU model, with or without a version, or a signature', () => {
    expect(cpuSignature('EPYC')).toBe(0x800f12)
    expect(cpuSignature('EPYC-v4')).toBe(0x800f12)
    expect(cpuSignature('EPYC-Rome-v2')).toBe(0x830f10)
    expect(cpuSignature('EPYC-Milan')).toBe(0xa00f11)
    expect(cpuSignature('EPYC-Genoa-v2')).toBe(0xa10f10)
    expect(cpuSignature('EPYC-Turin')).toBe(0xb00f00)
    expect(cpuSignature('0xb00f21')).toBe(0xb00f21)
  })

  it('is refused when it is not known', () => {
    expect(() => cpuSignature('Skylake-Server')).toThrow(
      new LaunchError(
        'Skylake-Server is no known CPU type: give one of EPYC, EPYC-IBPB, EPYC-Rome, EPYC-Milan, ' +
          'EPYC-Genoa, EPYC-Turin, with or without a version, or a signature (0x800f12)',
      ),
    )
  })
})
