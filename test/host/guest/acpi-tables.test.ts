import { createHash } from 'node:crypto'
import { describe, expect, it } from 'vitest'
import { claimsGuestMemory, describeTables } from '../../../src/host/guest/acpi-tables.ts'

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
      memory: [],
      computed: 3,
    })
  })

  it('is nothing in bytes that are no declaration, or end within one', () => {
    const { regions, memory, computed } = describeTables([
      table([0x5b, 0x80, 1, 2, 3, 4, 0]),
      table([0x5b, 0x80, 0x41, 0x41]),
      table([0x5b]),
      table([]),
    ])
    expect([regions, memory, computed]).toEqual([{}, [], 0])
  })
})

describe('a region in memory', () => {
  const memoryAt = (place: readonly number[]) =>
    table([0x5b, 0x80, ...Buffer.from('REGN'), 0, ...place])
  const QWORD = [0x0e, 0, 0x10, 0, 0, 1, 0, 0, 0]
  const IOMEM =
    '00000000-00000fff : Reserved\n00100000-1fffffff : System RAM\n  00200000-002fffff : Kernel code\n100000000-10000ffff : System RAM\nfed00000-fed003ff : HPET 0\n'

  it('is described by its place, whatever form the numbers have, or counted as computed', () => {
    const tables = [
      memoryAt([0x0c, 0, 0, 0xd0, 0xfe, 0x0b, 0, 4]),
      memoryAt([...QWORD, 0x0a, 0x20]),
      memoryAt([0, 1]),
      // The value of a name.
      memoryAt([...Buffer.from('BASE'), 0x0a, 0x10]),
      memoryAt([0x0c, 0, 0]),
    ]
    expect(describeTables(tables)).toMatchObject({
      memory: ['fed00000+400', '100001000+20', '0+1'],
      computed: 2,
    })
  })

  it.each([
    ['in a device', [0x0c, 0, 0, 0xd0, 0xfe, 0x0b, 0, 4], false],
    ['just before the memory', [0x0c, 0, 0xf0, 0x0f, 0, 0x0b, 0, 0x10], false],
    ['reaching into it', [0x0c, 0, 0xf0, 0x0f, 0, 0x0b, 1, 0x10], true],
    ['at its last byte', [0x0c, 0xff, 0xff, 0xff, 0x1f, 1], true],
    ['just behind it', [0x0c, 0, 0, 0, 0x20, 1], false],
    ['above 4 GiB', [...QWORD, 0x0a, 0x20], true],
  ])('%s: is it memory of the guest?', (_name, place, claimed) => {
    expect(claimsGuestMemory([memoryAt(place)], IOMEM)).toBe(claimed)
  })

  it('is not judged where it is computed: the tables do not say where it is', () => {
    const computed = memoryAt([...Buffer.from('BASE'), 0x0a, 0x10])
    expect(claimsGuestMemory([computed], IOMEM)).toBe(false)
  })
})
