/** What an owner can set, by the one name that it has everywhere (R-HTTP-12), and how a configuration file writes it. */
export const SETTINGS = {
  HELMDECK_DATA_DIR: { as: 'text' },
  HELMDECK_ADDR: { as: 'text' },
  HELMDECK_ALLOWED_HOSTS: { as: 'list' },
  HELMDECK_MEMORY_KEY: { as: 'text', secret: true },
  HELMDECK_MEMORY_KEY_FILE: { as: 'text' },
  HELMDECK_MEMORY_KEY_NEXT: { as: 'text', secret: true },
  HELMDECK_MEMORY_KEY_NEXT_FILE: { as: 'text' },
  HELMDECK_JWT_SECRET: { as: 'text', secret: true },
  HELMDECK_JWT_SECRET_FILE: { as: 'text' },
  HELMDECK_FETCH_HOSTS: { as: 'list' },
  HELMDECK_GITHUB_TOKEN: { as: 'text', secret: true },
  HELMDECK_GITHUB_TOKEN_FILE: { as: 'text' },
  HELMDECK_QUOTA_FACTS: { as: 'number' },
  HELMDECK_QUOTA_BYTES: { as: 'number' },
  HELMDECK_WRITES_PER_MINUTE: { as: 'number' },
  HELMDECK_SECRETS: { as: 'text' },
  HELMDECK_LOCK_AFTER: { as: 'number' },
  HELMDECK_SHORTCUT: { as: 'text' },
  HELMDECK_PACKS: { as: 'list' },
  HELMDECK_OPENCLAW_QMD: { as: 'text' },
  HELMDECK_OLLAMA: { as: 'text' },
  HELMDECK_OLLAMA_URL: { as: 'text' },
  HELMDECK_EMBEDDINGS_MODEL: { as: 'text' },
} as const satisfies Record<string, Setting>;

interface Setting {
  readonly as: 'text' | 'number' | 'list';
  readonly secret?: true;
}

export type SettingName = keyof typeof SETTINGS;

export const isSettingName = (name: string): name is SettingName => Object.hasOwn(SETTINGS, name);

export const isSecretSetting = (name: SettingName): boolean => 'secret' in SETTINGS[name];
