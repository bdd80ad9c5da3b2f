import { createHash } from 'node:crypto'

/** The kernel settings every guest has. */
const KERNEL_SETTINGS = [
  // None: what the kernel says, such as the registers and the stack at a panic, would go to the host.
  'console=null',
  // A guest whose root or memory differs from the measurement stops; the host learns nothing else.
  'panic=-1',
  'oops=panic',
  // Signed modules only, and no way from root to the kernel's memory.
  'module.sig_enforce=1',
  'lockdown=confidentiality',
  'init_on_alloc=1',
  // Of the ACPI tables, which are the host's, the kernel runs the program of one and of no other.
  'acpi_no_static_ssdt',
  'acpi_no_memhotplug',
  // Nor does it follow their instructions for error records, by which a panic's messages would reach the host.
  'erst_disable',
  'hest_disable',
  'bert_disable',
  'quiet',
]

/** The parts of an image that are on the command line. */
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
