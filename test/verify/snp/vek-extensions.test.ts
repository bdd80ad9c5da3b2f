import { describe, expect, test } from 'vitest'
import { readVekExtensions } from '../../../src/verify/snp/vek-extensions.ts'
import { readCertificate } from '../../../src/verify/x509/certificate.ts'
import { readPem } from '../../../src/verify/x509/pem.ts'
import { syntheticChain } from '../../support/synthetic-snp.ts'

describe('the extensions of a chip certificate', () => {
  test('are refused where any of them stands there twice, even with the same value', async () => {
    const [leaf] = readPem((await syntheticChain()).pem)
    if (leaf === undefined) throw new Error('the chain is empty')
    const certificate = readCertificate(leaf.der)
    expect(() => readVekExtensions(certificate, 'genoa', 'vcek')).not.toThrow()
    for (const extension of certificate.extensions) {
      const extensions = [...certificate.extensions, extension]
      expect(() => readVekExtensions({ ...certificate, extensions }, 'genoa', 'vcek')).toThrow(
        'an extension stands there twice',
      )
    }
  })
})
