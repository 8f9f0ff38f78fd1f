// What `make test` passes on; each name is missed by name.
function required(name) {
    const value = process.env[name];
    if (!value) throw new Error(`${name} is not set; \`make test\` sets it`);
    return value;
}

export const environment = {
    /** A role that may create databases, on a cluster that may be thrown away. */
    databaseUrl: required('YICI_TEST_DATABASE_URL'),
    serverBinary: required('YICI_SERVER_BIN'),
    site: required('YICI_SITE'),
    chromium: required('YICI_CHROMIUM'),
};
