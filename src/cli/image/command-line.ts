import { createHash } from 'node:crypto'

/** The kernel settings of every guest. */
const KERNEL_SETTINGS = [
  // No console: kernel messages, such as registers and stack at a panic, would go to the host.
  'console=null',
  // A guest whose root or memory differs from the measurement stops; the host learns nothing else.
  'panic=-1',
  'oops=panic',
  // Signed modules only, and no way from root to the kernel's memory.
  'module.sig_enforce=1',
  'lockdown=confidentiality',
  'init_on_alloc=1',
  // The host supplies the ACPI tables. The kernel executes AML code from the DSDT only, not from SSDTs.
  'acpi_no_static_ssdt',
  'acpi_no_memhotplug',
  // Ignores the ACPI tables for error records (ERST, HEST), through which messages of a panic would reach the host.
  'erst_disable',
  'hest_disable',
  'bert_disable',
  'quiet',
]

/** The parts of an image that go on the kernel command line. */
export interface MeasuredRoot {
  readonly rootHash: string
  readonly rootBlocks: number
}

/** The command line that binds the root file system and the configuration to the measured kernel. */
export function commandLine(root: MeasuredRoot, configuration: Uint8Array): string {
  const configSha256 = createHash('sha256').update(configuration).digest('hex')
  const bound = [
    `cmr.root=${root.rootHash}`,
    `cmr.root_blocks=${root.rootBlocks}`,
    `cmr.config=${configSha256}`,
  ]
  return [...KERNEL_SETTINGS, ...bound].join(' ')
}
