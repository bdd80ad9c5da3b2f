import { createHash } from 'node:crypto'
import { describe, expect, it } from 'vitest'
import { describeTables } from '../../../src/host/guest/acpi-tables.ts'

const region = (name: string, space: number) => [
  0x5b,
  0x80,
  ...Buffer.from(name, 'latin1'),
  space,
  0x0a,
  0x10,
]

const table = (bytes: readonly number[]) => ({ name: 'DSDT', bytes: Uint8Array.from(bytes) })

describe('what the tables of the host declare', () => {
  it('is counted by address space, whatever form a name has', () => {
    const bytes = [
      ...region('DBG_', 1),
      ...region('\\_SB_', 0),
      ...region('^^REGN', 2),
      ...region('.AAAABBBB', 0),
      ...region('/\x03AAAABBBBCCCC', 0),
      ...region('VEND', 0x80),
    ]
    expect(describeTables([table(bytes)])).toEqual({
      event: 'acpi_tables',
      sha256: createHash('sha256').update(Uint8Array.from(bytes)).digest('hex'),
      tables: 1,
      regions: { system_io: 1, system_memory: 3, pci_config: 1, other: 1 },
    })
  })

  it('is nothing in bytes that are no declaration, or end within one', () => {
    const { regions } = describeTables([
      table([0x5b, 0x80, 1, 2, 3, 4, 0]),
      table([0x5b, 0x80, 0x41, 0x41]),
      table([0x5b]),
      table([]),
    ])
    expect(regions).toEqual({})
  })
})
