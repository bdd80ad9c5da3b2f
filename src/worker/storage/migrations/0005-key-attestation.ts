/** The attestation that a key requires of every provider. Explained in docs/storage.md. */
export const statements: readonly string[] = [
  `ALTER TABLE api_keys ADD COLUMN min_attestation TEXT
    CHECK (min_attestation IN ('none', 'simulated', 'hardware-os-unpinned', 'hardware'))`,
]
