import { describe, expect, test } from 'vitest'
import { auditVerdict } from '../../../scripts/audit/verdict.ts'

const report = (vulnerabilities: object) =>
  JSON.stringify({ auditReportVersion: 2, vulnerabilities, metadata: {} })
const weakness = (severity: string) => ({ name: 'left', severity, range: '<2.0.0', via: [] })

describe('the dependency audit', () => {
  test('is clean without weaknesses, and with minor ones', () => {
    expect(auditVerdict(report({}))).toEqual({ kind: 'clean' })
    expect(auditVerdict(report({ left: weakness('low') }))).toEqual({ kind: 'clean' })
  })

  test.each(['moderate', 'high', 'critical'])('names a weakness that is %s', (severity) => {
    expect(auditVerdict(report({ left: weakness(severity) }))).toEqual({
      kind: 'weak',
      findings: [`left <2.0.0: ${severity}`],
    })
  })

  test('does not know when the registry refuses, is away, or answers something else', () => {
    const refused = JSON.stringify({ message: '405 Method Not Allowed', statusCode: 405 })
    expect(auditVerdict(refused)).toEqual({ kind: 'unknown', reason: '405 Method Not Allowed' })
    for (const output of ['', 'npm error', '{}', JSON.stringify({ auditReportVersion: 3 })]) {
      expect(auditVerdict(output)).toEqual({ kind: 'unknown', reason: 'npm gave no report' })
    }
  })
})
