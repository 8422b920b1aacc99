"""Object stores by URL: folders, S3, Google Cloud Storage and Azure, each with create-if-absent."""
